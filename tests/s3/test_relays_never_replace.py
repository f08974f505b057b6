"""`--overwrite never` of files that pass through this host to S3: objects of others stay."""

from collections.abc import Callable, Iterator

import pytest
from s3.scripted_s3 import Answer, Asked, ResetInstead, ScriptedS3, error
from web.scripted_http import Answer as HttpAnswer
from web.scripted_http import Exchange, ScriptedHttp

import mpx
from mpx.endpoints.s3.access import S3Access
from mpx.errors import MpxError

FILES = {f"/folder/{name}": f"new {name}".encode() for name in ("a", "b", "c", "d")}
THEIRS = b"of others"


@pytest.fixture
def source() -> Iterator[ScriptedHttp]:
    with ScriptedHttp({}, dict(FILES)) as server:
        yield server


def passed(source: ScriptedHttp, **options: object) -> mpx.Report | MpxError:
    urls = [f"{source.origin}{name}" for name in FILES]
    given = {"retries": 2, **options}
    told = mpx.CopyOptions(overwrite="never", timeout_s=20.0, streams=1, **given)
    try:
        return mpx.copy(urls, "s3://bucket/folder", told)
    except MpxError as failed:
        return failed


def heeding(server: ScriptedS3, asked: Asked) -> Answer | None:
    is_taken = asked.key in server.objects and "if-none-match" in asked.headers  # it makes an object
    return error(412, "PreconditionFailed") if is_taken else None


def ignoring(_server: ScriptedS3, _asked: Asked) -> None:
    """Do as if no condition had been set."""


@pytest.mark.parametrize("heeds", [heeding, ignoring])
def test_one_that_comes_meanwhile_stays(
    heeds: Callable[[ScriptedS3, Asked], Answer | None], source: ScriptedHttp, scripted: ScriptedS3
) -> None:
    def fetched(exchange: Exchange) -> HttpAnswer:
        scripted.objects["folder/c"] = THEIRS
        return exchange.usual()

    source.script = {"GET": fetched}
    scripted.instead = lambda asked: heeds(scripted, asked)
    outcome = passed(source)
    assert isinstance(outcome, MpxError) and outcome.exit_code == 10
    assert "folder/c has come into being meanwhile" in str(outcome)
    assert scripted.objects == {
        **{name.lstrip("/"): data for name, data in FILES.items()},
        "folder/c": THEIRS,
    }


def test_a_server_that_knows_no_condition(source: ScriptedHttp, scripted: ScriptedS3) -> None:
    """It is asked again without, which is no failure."""

    def answer(asked: Asked) -> Answer | None:
        return error(501, "NotImplemented") if "if-none-match" in asked.headers else None

    scripted.instead = answer
    outcome = passed(source, retries=0)
    assert isinstance(outcome, mpx.Report), outcome
    assert scripted.objects == {name.lstrip("/"): data for name, data in FILES.items()}


@pytest.mark.parametrize("key", ["folder/a", "folder/b"])
@pytest.mark.parametrize("looks", [True, False])
def test_ours_are_known_again(
    key: str, looks: bool, source: ScriptedHttp, scripted: ScriptedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to one is lost: the first of a connection, or a later one."""
    if not looks:  # as at AWS
        monkeypatch.setattr(S3Access, "looks_before", False)
    lost: list[Asked] = []

    def answer(asked: Asked) -> Answer | None:
        if asked.method == "PUT" and asked.key == key and not lost:
            lost.append(asked)
            scripted._answer(asked)
            raise ResetInstead
        return heeding(scripted, asked)

    scripted.instead = answer
    outcome = passed(source)
    assert isinstance(outcome, mpx.Report), outcome
    assert scripted.objects == {name.lstrip("/"): data for name, data in FILES.items()}
    assert scripted.count("begin") == scripted.count("abort")
