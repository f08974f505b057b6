"""Checksums of stored files that the server computes none of: their bytes are read back, over GET."""

from collections.abc import Callable, Sequence

from mpx.endpoints.web.dialogue import DRAINED_BYTES, WebDialogue
from mpx.endpoints.web.refusals import has_data
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine import checksum
from mpx.engine.endpoint import Part
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import Interrupted, MpxError, NoChecksum

_STORED = {"Cache-Control": "no-cache"}  # not what a proxy has kept of it


class ReadBack:
    """For one thread. `limiter`: of all that read back."""

    def __init__(self, dialogue: WebDialogue, limiter: RateLimiter) -> None:
        self._access, self._dialogue, self._limiter = dialogue.access, dialogue, limiter
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def sums(self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]) -> list[str | Exception]:
        """Return the checksum of each file as it is stored, or why there is none; see Endpoint.checksums.

        Short files are asked for together, longer ones read one after the other.
        """
        found: list[str | Exception] = []
        short: list[WebUrl] = []
        for part in [*parts, None]:
            url = self._access.url_of(part.name) if part else None
            if part and url and part.is_whole and part.end <= DRAINED_BYTES:
                short.append(url)
                continue
            found += self._short(algorithm, short, stop)
            short = []
            if part and url:
                is_whole = part.is_whole
                found.append(self._long(algorithm, url, stop) if is_whole else _no_part(url))
        return found

    def _short(
        self, algorithm: str, urls: Sequence[WebUrl], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        answers: list[str | Exception | None] = []
        for url, answer in zip(urls, self._dialogue.ask_all("GET", urls, _STORED), strict=True):
            if answer is None or not answer[0].is_ended:
                answers.append(None)
                continue
            reply, content = answer
            digest = checksum.new(algorithm)
            self._pass(digest, memoryview(content), stop)
            answers.append(digest.digest().hex() if has_data(reply) else self._error(reply, url))
        return [
            self._long(algorithm, url, stop) if answer is None else answer
            for url, answer in zip(urls, answers, strict=True)
        ]

    def _long(self, algorithm: str, url: WebUrl, stop: Callable[[], bool]) -> str | Exception:
        with self._dialogue.ask("GET", url, _STORED) as (reply, at):
            if not has_data(reply):
                return self._error(reply, at)
            digest = checksum.new(algorithm)
            while size := reply.read_into(self._buffer[: self._limiter.piece(BUFFER_BYTES)]):
                self._pass(digest, self._buffer[:size], stop)
            return digest.digest().hex()

    def _pass(self, digest: checksum.Digest, data: memoryview, stop: Callable[[], bool]) -> None:
        while data:
            piece = data[: self._limiter.piece(len(data))]
            if stop():
                raise Interrupted("stopped")
            self._limiter.wait(len(piece))
            digest.update(piece)
            data = data[len(piece) :]

    def _error(self, reply: HttpReply, url: WebUrl) -> MpxError:
        return self._dialogue.refused(reply, url, "let us read back")


def _no_part(url: WebUrl) -> NoChecksum:
    return NoChecksum(MpxError(f"{url}: only whole files are read back"))
