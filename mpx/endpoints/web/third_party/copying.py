"""One file that a server copies from or to another one: COPY, its answer, and what that means."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from mpx.endpoints.web.connection import WebRequest
from mpx.endpoints.web.dialogue import MOST_REDIRECTS, redirected
from mpx.endpoints.web.file_put import STORED_BPS
from mpx.endpoints.web.lanes import LaneSet
from mpx.endpoints.web.refusals import REDIRECTS, is_success, refused
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.third_party.handed import Handed
from mpx.endpoints.web.third_party.way import CopyWay
from mpx.endpoints.web.tpc_answer import TpcAnswer
from mpx.endpoints.web.url import WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, ThirdPartyRefused, TransferTimeout
from mpx.text import shown
from mpx.units import format_duration

MARKER_S = 5.0  # that servers let pass between two markers, at most
_BUFFER_BYTES = 16 * 1024
_MOST_BODY = 64 * 1024  # of a refusal
_MOST_SHOWN = 300  # characters of what a server says
_OF_CREDENTIALS = (401, 403)
# Of COPY itself: XRootD answers 401 also where the mode of a file or folder permits nothing.
_OF_FILES = (401, 403, 404, 409, 410, 412, 423)


@dataclass(frozen=True, slots=True)
class CopyRefusal:
    """Why a server has not copied a file.

    `status`: of the other server's answer, as far as that is told. `error`: its own answer, where it is none
    of HTTP-TPC, and `own_status` the status of that.
    """

    text: str
    status: int | None = None
    error: MpxError | None = None
    own_status: int | None = None
    is_local_copy: bool = False  # a server that knows no other ones may have copied it within itself

    @property
    def is_about_credentials(self) -> bool:
        """Whether what was handed over does not let the server in."""
        return self.status in _OF_CREDENTIALS

    @property
    def may_be_of_file(self) -> bool:
        """Whether it may be this file alone that cannot be copied."""
        return self.own_status in _OF_FILES or (self.status is not None and 400 <= self.status < 500)

    @property
    def is_unexplained(self) -> bool:
        """Whether it may as well be a failure of the network: no server has said that it does not want to."""
        return self.error is None and self.status is None and not self.is_local_copy


class Copying:
    """Has files copied, one after the other. For one worker's thread.

    `told` is called with how many bytes of a file have been copied so far.
    """

    def __init__(self, way: CopyWay, lanes: LaneSet, timeout_s: float, told: Callable[[int], None]) -> None:
        self._way, self._lanes, self._told = way, lanes, told
        self._patience_s = timeout_s + MARKER_S
        self._view = memoryview(bytearray(_BUFFER_BYTES))

    def copy(self, file: FileTransfer, handed: Handed) -> CopyRefusal | None:
        """Have a file copied; return why it was not.

        Raises ThirdPartyRefused where the server leads elsewhere, ConnectionLost and the like.
        """
        url = self._way.asked_at(file)
        for _ in range(MOST_REDIRECTS + 1):
            reply = self._ask(self._way.active.request("COPY", url, self._way.headers(file, handed)))
            if reply.status not in REDIRECTS:
                break
            reply.read(_MOST_BODY)
            self._leave(reply, url)
            url = self._led_to(reply, url)
        else:
            raise ThirdPartyRefused(f"{url.origin} leads from one URL to the next without end")
        if not is_success(reply):
            return self._refused(reply, url)
        answer = self._follow(file, reply, url)
        self._leave(reply, url)
        if answer.is_success:
            return None
        return self._failed(answer, reply, url)

    def _led_to(self, reply: HttpReply, url: WebUrl) -> WebUrl:
        """Return where the server leads: what is handed over goes to no other than our own credentials."""
        try:
            to = redirected(reply, url)
        except AuthenticationError as error:  # it leads out of TLS
            raise ThirdPartyRefused(str(error)) from None
        assert to is not None
        if not self._way.active.may_have_credentials(to.origin):
            raise ThirdPartyRefused(
                f"{url.origin} leads to {shown(str(to.origin))}, which is to have no credentials of yours; "
                f"--send-token-to {shown(to.origin.host)} permits that"
            )
        return to

    def _ask(self, request: WebRequest) -> HttpReply:
        """Ask, and read the head of the answer; once more where a connection that was kept had ended."""
        origin = request.url.origin
        http = self._lanes.to(origin).http
        was_used = http.answered > 0
        try:
            http.send(request)
            http.be_patient(self._patience_s)
            return http.reply(request.method)
        except ConnectionLost:
            if not was_used or http.incoming.has_some:
                raise
        self._lanes.drop(origin)
        http = self._lanes.to(origin).http
        http.send(request)
        http.be_patient(self._patience_s)
        return http.reply(request.method)

    def _follow(self, file: FileTransfer, reply: HttpReply, url: WebUrl) -> TpcAnswer:
        """Read an answer to its end; raises TransferTimeout where nothing more is copied."""
        answer, grown_s, copied_bytes = TpcAnswer(), time.monotonic(), 0
        patience_s = self._patience_s
        while size := reply.read_into(self._view):
            answer.feed(self._view[:size])
            now_s = time.monotonic()
            # No more than there is, however much is told: else an answer might never end.
            is_at_bytes = answer.told_bytes
            if file.listed_bytes is not None:
                is_at_bytes = min(is_at_bytes, file.listed_bytes)
            if is_at_bytes > copied_bytes:
                grown_s, copied_bytes = now_s, is_at_bytes
                self._told(copied_bytes)
            if answer.told_bytes >= file.size_bytes:  # it may have to store what it has, without a word
                patience_s = self._patience_s + file.size_bytes * 8 / STORED_BPS
                if lane := self._lanes.get(url.origin):
                    lane.http.be_patient(patience_s)
            if now_s - grown_s > patience_s:
                raise TransferTimeout(
                    f"{self._way.does} and has copied nothing more of {file.source} for "
                    f"{format_duration(patience_s)}; --timeout waits longer, as for files on tape"
                )
        answer.close()
        return answer

    def _leave(self, reply: HttpReply, url: WebUrl) -> None:
        """Close a connection that does not last."""
        if not reply.is_reusable:
            self._lanes.drop(url.origin)

    def _refused(self, reply: HttpReply, url: WebUrl) -> CopyRefusal:
        active = self._way.active
        reply.read(_MOST_BODY)
        self._leave(reply, url)
        error = refused(
            reply,
            url,
            "copy",
            self._way.kind_here,
            has_credentials=active.has_credentials(url.origin),
            help_text=active.how_to_log_in(url.origin, reply),
        )
        return CopyRefusal(str(error), error=error, own_status=reply.status)

    def _failed(self, answer: TpcAnswer, reply: HttpReply, url: WebUrl) -> CopyRefusal:
        is_local_copy = not (self._way.is_pull or answer.is_tpc)
        why = "it copies to no other server" if is_local_copy else "it does not say that it has"
        if answer.failure and not is_local_copy:
            why = shown(reply.secrets.hidden_in(answer.failure)[:_MOST_SHOWN])
        return CopyRefusal(
            f"{url.origin} has not copied {shown(url.path)}: {why}",
            status=answer.failed_status,
            is_local_copy=is_local_copy,
        )
