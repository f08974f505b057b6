"""Checksums of files at a server of XRootD: it computes those of large files, small ones are read back.

It is asked for a few at a time: one that computes N at once notes 3 N, and whoever asks for more is told to
come again in half a minute. Over a long round trip they would be most of the time of a copy of small files.
"""

from collections.abc import Sequence
from typing import Protocol

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.refusals import is_missing
from mpx.endpoints.sftp.session import Request, extended, request
from mpx.endpoints.sftp.wire import Attributes, Code, Data, Extended, Handle, Open, PacketKind, Reply, Status
from mpx.endpoints.xrootd.capabilities import CHECKSUMS
from mpx.endpoints.xrootd.meaning import SUM_TIMEOUT_S, parse_sum
from mpx.engine import checksum
from mpx.engine.endpoint import Part
from mpx.errors import MpxError, NoChecksum

SMALL_BYTES = 128 * 1024  # read back rather than asked for
_AT_ONCE = 64  # files that are read together
SUMS_AT_ONCE = 3  # by a server that computes one at a time they are noted, where nobody else asks
_ALL = 1000


class Ask(Protocol):
    """See SftpSession.ask."""

    def __call__(
        self, requests: Sequence[Request], *, at_once: int = _ALL, timeout_s: float | None = None
    ) -> list[Reply]:
        """Return the answers."""
        ...


class Refused(Protocol):
    """Makes the error of an answer, of what was to be done, and of the name."""

    def __call__(self, reply: Reply, what: str, name: str, /) -> MpxError:
        """Return it."""
        ...


class FileSums:
    """What one server tells. Used for one question; `refused` makes the error of a refusal."""

    def __init__(self, ask: Ask, host: str, refused: Refused, refusal: type[MpxError]) -> None:
        self._ask, self._host, self._refused, self._refusal = ask, host, refused, refusal

    def of(self, algorithm: str, parts: Sequence[Part]) -> list[str | Exception]:
        """Return the checksum of each part, or why there is none; raises as `ask`."""
        if algorithm not in CHECKSUMS:
            return [self._none(f"no {algorithm}") for _ in parts]
        whole = [part for part in parts if part.is_whole]
        small = [part for part in whole if part.end <= SMALL_BYTES]
        found: dict[Part, str | Exception] = {}
        for first in range(0, len(small), _AT_ONCE):
            some = small[first : first + _AT_ONCE]
            found.update(zip(some, self._read_back(algorithm, some), strict=True))
        large = [part for part in whole if part not in found]
        found.update(zip(large, self._told(algorithm, large), strict=True))
        return [found.get(part) or self._none("none of parts of files") for part in parts]

    def _none(self, what: str) -> NoChecksum:
        return NoChecksum(self._refusal(f"{self._host} computes {what}"))

    def _told(self, algorithm: str, parts: Sequence[Part]) -> list[str | Exception]:
        """Have the server compute them, however long that takes."""
        asked = [
            extended(wire.CHECKSUM, wire.name(part.name), wire.text(algorithm.encode())) for part in parts
        ]
        replies = self._ask(asked, at_once=SUMS_AT_ONCE, timeout_s=SUM_TIMEOUT_S)
        return [self._read(algorithm, part, reply) for part, reply in zip(parts, replies, strict=True)]

    def _read(self, algorithm: str, part: Part, reply: Reply) -> str | Exception:
        if isinstance(reply, Extended):
            return parse_sum(reply.content, algorithm) or self._none(f"another checksum than {algorithm}")
        refusal = self._refused(reply, f"compute the {algorithm} of", part.name)
        return refusal if is_missing(reply) else NoChecksum(refusal)

    def _read_back(self, algorithm: str, parts: Sequence[Part]) -> list[str | Exception]:
        """Read small files to their ends, of which one that is longer shows."""
        flags, nothing = wire.u32(Open.READ), wire.attributes(Attributes())
        opened = self._ask([request(PacketKind.OPEN, wire.name(part.name), flags, nothing) for part in parts])
        handles = [wire.text(reply.value) if isinstance(reply, Handle) else b"" for reply in opened]
        asked = [
            request(PacketKind.READ, handle, wire.u64(0), wire.u32(part.end + 1))
            for part, handle in zip(parts, handles, strict=True)
            if handle
        ]
        read = iter(self._ask(asked))
        replies = [next(read) if handle else reply for handle, reply in zip(handles, opened, strict=True)]
        self._ask([request(PacketKind.CLOSE, handle) for handle in handles if handle])
        return [self._sum(algorithm, part, reply) for part, reply in zip(parts, replies, strict=True)]

    def _sum(self, algorithm: str, part: Part, reply: Reply) -> str | Exception:
        is_empty = isinstance(reply, Status) and reply.code == Code.EOF
        if not (is_empty or isinstance(reply, Data)):
            return self._refused(reply, "read back", part.name)
        digest = checksum.new(algorithm)
        if isinstance(reply, Data):
            digest.update(reply.content)
        return digest.digest().hex()
