"""Objects that are stored in one request each, under their final names at once."""

from contextlib import AbstractContextManager
from typing import Protocol

from mpx.endpoints.s3.access import ConditionUnknown, S3Access
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.sending import Bytes, Sums
from mpx.endpoints.s3.stored_sums import TELL_SUMS
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import DestinationError, IsThere

PLAIN = {"Content-Type": "application/octet-stream"}


class WholePutter(Protocol):
    """Who sends the bytes, and asks."""

    @property
    def s3(self) -> S3Access:
        """Of the bucket."""
        ...

    @property
    def questions(self) -> S3Questions:
        """Of its thread."""
        ...

    def asking_over_lane(self) -> AbstractContextManager[None]:
        """Ask, within, over the connection that bytes will be sent over, if there is one."""
        ...

    def put_bytes(self, url: WebUrl, some: Bytes, sums: Sums) -> HttpReply:
        """Do one PUT; return the answer, which is a success. Raises what a refusal means."""
        ...


def put_whole(worker: WholePutter, file: FileTransfer, some: Bytes, sums: Sums) -> HttpReply:
    """Store an object; return what tells that it is stored. Raises what a refusal means.

    Where it is to replace none, what is there is compared: an answer before may have been lost.
    """
    s3 = worker.s3
    had_condition = s3.takes_conditions
    reply = _is_stored_before(worker, file, some, sums) if s3.looks_before else None
    if reply is not None:
        return reply
    try:
        return worker.put_bytes(s3.url_of(file.final), some, sums)
    except IsThere:
        reply = _is_stored_before(worker, file, some, sums)
        if reply is None:
            raise
        return reply
    except (ConditionUnknown, DestinationError) as error:
        if not s3.is_to_ask_without(error, had_condition=had_condition):
            raise
        return put_whole(worker, file, some, sums)  # having looked


def _is_stored_before(worker: WholePutter, file: FileTransfer, some: Bytes, sums: Sums) -> HttpReply | None:
    """Return what tells that these bytes are stored.

    None where there is nothing, as far as we may know; raises IsThere for another object.
    """
    with worker.asking_over_lane():
        reply, _, url = worker.questions.ask("HEAD", file.final, headers=TELL_SUMS)
    if not is_success(reply):
        return None
    if reply.told_bytes != some.size_bytes or not sums.are_of(reply):
        raise IsThere(str(url))
    return reply
