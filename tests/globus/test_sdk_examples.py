"""The SDK's own examples of answers, which are those of the live service: they mean to us what they say."""

from collections.abc import Iterator

import pytest
import responses
from globus_sdk import AccessTokenAuthorizer, GlobusAPIError, TransferClient
from globus_sdk.testing import get_response_set, load_response

from mpx.endpoints.globus.described import info_of
from mpx.endpoints.globus.refusals import is_missing, is_there, meaning
from mpx.endpoints.globus.task_state import state_of
from mpx.engine.endpoint import Kind
from mpx.errors import MpxError, SourceError


@pytest.fixture
def client(no_settings: None) -> Iterator[TransferClient]:
    with responses.mock:
        yield TransferClient(authorizer=AccessTokenAuthorizer("a-token"))


def test_a_file(client: TransferClient) -> None:
    example = load_response(client.operation_stat)
    info = info_of(client.operation_stat(example.metadata["endpoint_id"], "/x").data, follow=True)
    assert info and (info.kind, info.size_bytes) == (Kind.FILE, 4) and info.modified_s == 1702918370


@pytest.mark.parametrize(("case", "missing"), [("not_found", True), ("permission_denied", False)])
def test_what_is_not_described(client: TransferClient, case: str, missing: bool) -> None:
    collection = load_response(client.operation_stat, case=case).metadata["endpoint_id"]
    with pytest.raises(GlobusAPIError) as told:
        client.operation_stat(collection, "/x")
    assert is_missing(told.value) == missing and not is_there(told.value)
    found = meaning(told.value, "describe /x", SourceError, ["a-token"])
    assert isinstance(found, SourceError) and "\n" not in str(found)
    assert ("No such file or directory" in str(found)) == missing


def test_a_task() -> None:
    (told,) = get_response_set("transfer.task_list").lookup("default").json["DATA"]
    state = state_of(told, told["task_id"])
    assert state.is_done and (state.files_moved, state.moved_bytes, state.faults) == (1, 4, 0)
    assert "SUCCEEDED, 1 file, 4 B" in state.summary() and "subtasks: 2 succeeded" in state.summary()


def test_a_submission_that_is_refused(client: TransferClient) -> None:
    load_response(client.submit_transfer, case="failure")
    with pytest.raises(GlobusAPIError) as told:
        client.submit_transfer({"submission_id": "s", "DATA": []})
    found = meaning(told.value, "submit", MpxError)
    assert not found.may_retry and "A transfer requires at least one item" in str(found)
