"""Whether a server stores parts of files (PUT with Content-Range), tried on a small file of ours.

RFC 9110 (14.5) has a server refuse such a PUT with 400 unless it knows what it means. Apache keeps the rest
of the file, nginx answers 501, WsgiDAV 400; XRootD answers that all is well and takes the part for the whole
file: so what is stored is read back. The file has the name of a partial file, and is removed.
"""

import posixpath
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.dialogue import DRAINED_BYTES, WebDialogue
from mpx.endpoints.web.file_put import part_headers
from mpx.endpoints.web.part_stores import PartProof
from mpx.endpoints.web.refusals import BUSY, MISSING, NOT_SUPPORTED, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.errors import AuthenticationError, ConnectionLost, DestinationError, TransferTimeout
from mpx.files.partial_names import partial_name
from mpx.net import tcp
from mpx.text import shown

PIECE_BYTES = 64
WHOLE_BYTES, HOLE_BYTES = 3 * PIECE_BYTES, 2 * PIECE_BYTES
CREATED = 201  # of a part: the file was not there, and nothing else is in it
_NO_FOLDER = (*MISSING, 409)
_PASSING = (408, *BUSY)
_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class _Step:
    """One request, and what is wrong with its answer (empty: nothing)."""

    method: str
    judge: Callable[[HttpReply, bytes], str]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    makes: bool = False  # the file


class PartProbe:
    """For one thread; `stop` tells whether the copy is stopped."""

    def __init__(self, access: WebAccess, stop: Callable[[], bool] | None = None) -> None:
        self._access, self._stop = access, stop
        self._has_no_folder = False
        self._is_refused = False  # the file was not made
        self._is_passing = False  # the first failure may go right the next time
        self.is_reusable = True  # the connection that was asked over
        self.left = ""  # the file, and why the server has not removed it

    def prove(self, http: HttpConnection, folder: str) -> PartProof:
        """Try it in a folder, over a connection on which nothing is under way; raises Interrupted."""
        prefix = self._access.options.partial_prefix
        name = partial_name(posixpath.join(folder, "probe"), secrets.token_hex(6), prefix)
        url, steps = self._access.url_of(name), _steps()
        is_together = self._access.pipelining.is_possible(http.origin) and not self._access.server.hangs
        ask = self._ask_together if is_together else self._ask_in_turn
        answered, why_not = 0, ""
        try:
            for step, reply, content in ask(http, url, steps):
                answered += 1
                self.is_reusable = reply.is_reusable
                if not why_not:
                    why_not = self._judged(step, reply, content)
                    self._is_passing = bool(why_not) and _is_passing(reply)
                if step.method == "DELETE":
                    self._look_at_removal(reply, url)
                if not reply.is_reusable or (why_not and not is_together):
                    break
        except (ConnectionLost, TransferTimeout) as error:
            self._is_passing = self._is_passing or not why_not
            why_not, self.is_reusable = why_not or str(error), False
        if answered < len(steps):
            if not self._is_refused:
                self._remove(url)
            self._is_passing = self._is_passing or not why_not
            why_not = why_not or "the server ends the connection"
            self.is_reusable = self.is_reusable and not is_together
        return PartProof(why_not, self._has_no_folder, self._is_passing)

    def _judged(self, step: _Step, reply: HttpReply, content: bytes) -> str:
        if step.method == "DELETE":
            return ""  # it is gone, or stays: of parts this says nothing
        if is_success(reply):
            return step.judge(reply, content)
        if step.makes:
            self._is_refused, self._has_no_folder = True, reply.status in _NO_FOLDER
        return f"{_said(reply)} to a part of a file"

    def _ask_together(
        self, http: HttpConnection, url: WebUrl, steps: list[_Step]
    ) -> Iterator[tuple[_Step, HttpReply, bytes]]:
        with tcp.corked(http.socket):
            for step in steps:
                self._send(http, url, step)
        for number, step in enumerate(steps):
            reply = self._access.pipelining.reply(http, step.method) if number else http.reply(step.method)
            yield step, reply, reply.read(DRAINED_BYTES)

    def _ask_in_turn(
        self, http: HttpConnection, url: WebUrl, steps: list[_Step]
    ) -> Iterator[tuple[_Step, HttpReply, bytes]]:
        for step in steps:
            self._send(http, url, step)
            reply = http.reply(step.method)
            yield step, reply, reply.read(DRAINED_BYTES)

    def _send(self, http: HttpConnection, url: WebUrl, step: _Step) -> None:
        http.send(self._access.request(step.method, url, step.headers), step.body)

    def _remove(self, url: WebUrl) -> None:
        """Remove the file over another connection; best effort."""
        dialogue = WebDialogue(self._access, self._stop, follows=False)
        try:
            with dialogue.ask("DELETE", url) as (reply, _):
                self._look_at_removal(reply, url)
        except (AuthenticationError, ConnectionLost, DestinationError, TransferTimeout):
            pass
        finally:
            dialogue.close()

    def _look_at_removal(self, reply: HttpReply, url: WebUrl) -> None:
        if not (self._is_refused or is_success(reply) or reply.status in MISSING):
            self.left = f"{shown(str(url))}, on which this was tried, stays: {_said(reply)} to its removal"


def _said(reply: HttpReply) -> str:
    return f"the server answers {shown(f'{reply.status} {reply.reason}'.strip()[:_MOST_SHOWN])}"


def _is_passing(reply: HttpReply) -> bool:
    """Tell whether a refusal says nothing of parts of files: the server is busy, or has trouble."""
    is_trouble = reply.status >= 500 and reply.status not in NOT_SUPPORTED
    return is_trouble or reply.status in _PASSING


def _steps() -> list[_Step]:
    """Return what is asked for: a file is made, its middle and what is beyond its end are put, it is read.

    It is made by a part, so that a server which refuses these stores nothing.
    """
    whole, middle, beyond = (secrets.token_bytes(size) for size in (WHOLE_BYTES, PIECE_BYTES, PIECE_BYTES))
    start, size_bytes = WHOLE_BYTES + HOLE_BYTES, WHOLE_BYTES + HOLE_BYTES + PIECE_BYTES
    wanted = whole[:PIECE_BYTES] + middle + whole[2 * PIECE_BYTES :] + bytes(HOLE_BYTES) + beyond

    def is_stored(reply: HttpReply, _: bytes) -> str:
        return "the server takes a part of a file for a new one" if reply.status == CREATED else ""

    def is_right(reply: HttpReply, content: bytes) -> str:
        return "" if reply.is_ended and content == wanted else "the server does not keep the rest of a file"

    return [
        _Step("PUT", lambda *_: "", part_headers(0, WHOLE_BYTES, size_bytes), whole, makes=True),
        _Step("PUT", is_stored, part_headers(PIECE_BYTES, 2 * PIECE_BYTES, WHOLE_BYTES), middle),
        _Step("PUT", is_stored, part_headers(start, size_bytes, size_bytes), beyond),
        _Step("GET", is_right, {"Cache-Control": "no-cache"}),
        _Step("DELETE", lambda *_: ""),
    ]
