"""Digests of whole files that a web server computes or has stored, by HEAD (RFC 3230, RFC 9530)."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.folder import ASKED_AS, KeptBody, only_entry
from mpx.endpoints.web.headers import digests
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.server_digests import NOT_COMPUTED, digests_told, wanted
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import Part
from mpx.errors import Interrupted, MpxError, NoChecksum, TransferTimeout
from mpx.net.tcp import STOP_INTERVAL_S
from mpx.units import format_duration

READ_BYTES_S = 5e6  # as fast a server reads files at least that are on its disks
MOST_AT_ONCE = 2  # of one server that takes no requests ahead: XRootD may be set up to compute no more
FIRST_WAIT_S = 0.5  # for a digest; most servers have it, or compute it soon
_MULTI_STATUS = 207
_LISTED = (
    b'<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop>'
    b'<checksums xmlns="http://owncloud.org/ns"/><Checksums xmlns="http://www.dcache.org/2013/webdav"/>'
    b"</prop></propfind>"
)


class WebDigests:
    """For one thread."""

    def __init__(self, dialogue: WebDialogue) -> None:
        self._access, self._dialogue = dialogue.access, dialogue

    def ask(self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]) -> list[str | Exception]:
        """Return the digest of each file, or why there is none; see Endpoint.checksums.

        A file may be read from a disk or a tape for it: see WebOptions.digest_timeout_s.
        """
        server = self._access.server
        whole = [part for part in parts if part.is_whole]
        if not whole or not server.may_tell(algorithm):
            return [self._none(algorithm) for _ in parts]
        urls = [self._access.url_of(part.name) for part in whole]
        longest_s = self._patience_s(sum(part.end for part in whole))
        with self._turn(stop):
            found = self._heads(algorithm, urls, stop, longest_s)
        lacking = [i for i, each in enumerate(found) if isinstance(each, NoChecksum) and not each.is_of_file]
        if lacking and self._access.speaks_dav and server.may_list_checksums:
            for i, digest in zip(lacking, self._listed(algorithm, [urls[i] for i in lacking]), strict=True):
                found[i] = digest or found[i]
        told = iter(found)
        return [next(told) if part.is_whole else self._none(algorithm) for part in parts]

    def _patience_s(self, size_bytes: int) -> float:
        """Return for how long digests of so much are waited for: less where a server may never answer."""
        options = self._access.options
        if not self._access.server.hangs:
            return options.digest_timeout_s
        return min(options.digest_timeout_s, options.timeout_s + size_bytes / READ_BYTES_S)

    @contextlib.contextmanager
    def _turn(self, stop: Callable[[], bool]) -> Iterator[None]:
        """Wait until nobody else asks a server that does not answer when several do."""
        turn = self._access.server.turn
        if not self._access.server.hangs:
            yield
            return
        while not turn.acquire(timeout=STOP_INTERVAL_S):
            if stop():
                raise Interrupted("stopped")
        try:
            yield
        finally:
            turn.release()

    def _heads(
        self, algorithm: str, urls: Sequence[WebUrl], stop: Callable[[], bool], longest_s: float
    ) -> list[str | MpxError]:
        """Return what HEAD tells; once a server has been silent for too long it is asked for no more."""
        with self._dialogue.patient(min(FIRST_WAIT_S, longest_s)):
            answers = list(self._dialogue.ask_all("HEAD", urls, wanted(algorithm), most=MOST_AT_ONCE))
        found: list[str | MpxError] = []
        is_silent = False
        for url, answer in zip(urls, answers, strict=True):
            if stop():
                raise Interrupted("stopped")
            told = self._read(algorithm, answer[0], url) if answer else None
            if isinstance(told, NoChecksum) and not told.is_of_file and self._access.server.hangs:
                told = None if self._access.server.has_told(algorithm) else told
            if told is None and not is_silent:
                told = self._alone(algorithm, url, longest_s)
                is_silent = told is None
            found.append(told or self._too_late(algorithm, url, longest_s))
        return found

    def _alone(self, algorithm: str, url: WebUrl, longest_s: float) -> str | MpxError | None:
        """Ask for one digest until it is told, each time for twice as long; None where it is not in time.

        Of some hundred digests that XRootD 5.5 computes it forgets to tell one: it tells that to who asks
        again. A computation that a server gives up with the connection has ever more time.
        """
        until_s = time.monotonic() + longest_s
        wait_s = FIRST_WAIT_S
        while (left_s := until_s - time.monotonic()) > 0:
            with self._dialogue.patient(min(wait_s, left_s)):
                self._dialogue.connection(url.origin)  # that it cannot be opened is another thing
                try:
                    with self._dialogue.ask("HEAD", url, wanted(algorithm)) as (reply, at):
                        return self._read(algorithm, reply, at)
                except TransferTimeout:
                    wait_s *= 2
        return None

    def _too_late(self, algorithm: str, url: WebUrl, longest_s: float) -> NoChecksum:
        longest = format_duration(longest_s)
        return NoChecksum(self._dialogue.kind(f"{url}: the server tells no {algorithm} within {longest}"))

    def _read(self, algorithm: str, reply: HttpReply, url: WebUrl) -> str | MpxError:
        if not is_success(reply):
            refusal = self._dialogue.refused(reply, url, f"tell the {algorithm} of")
            is_of_file = reply.status not in NOT_COMPUTED
            if not is_of_file and url.origin == self._access.origin:
                self._access.server.lacks(algorithm)
            return refusal if refusal.may_retry else NoChecksum(refusal, is_of_file=is_of_file)
        told = digests_told(reply)
        if algorithm in told:
            return told[algorithm]
        if told and url.origin == self._access.origin:  # XRootD tells what it has
            self._access.server.lacks(algorithm)
        return self._none(algorithm, f", but {' and '.join(sorted(told))}" if told else "")

    def _listed(self, algorithm: str, urls: Sequence[WebUrl]) -> list[str | None]:
        """Return the digests that the server lists among the properties of files (ownCloud, dCache)."""
        answers = self._dialogue.ask_all("PROPFIND", urls, {"Depth": "0", **ASKED_AS}, _LISTED)
        found: list[str | None] = []
        for url, answer in zip(urls, list(answers), strict=True):
            is_told = answer is not None and answer[0].status == _MULTI_STATUS
            entry = only_entry(KeptBody.of(answer[1]), url) if answer and is_told else None
            found.append(digests(entry.checksums).get(algorithm) if entry else None)
        return found

    def _none(self, algorithm: str, instead: str = "") -> NoChecksum:
        return NoChecksum(self._dialogue.kind(f"{self._access.origin} tells no {algorithm}{instead}"))
