"""Checksums of files at a server of XRootD: it computes those of large files, small ones are read back.

It is asked for one at a time, as whoever asks for more than it computes at once waits for half a minute, or
for ever. Over a long round trip that would be most of the time of a copy of small files.
"""

from collections.abc import Callable, Sequence

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.refusals import is_missing
from mpx.endpoints.sftp.session import Request, extended, request
from mpx.endpoints.sftp.wire import Attributes, Code, Data, Extended, Handle, Open, PacketKind, Reply, Status
from mpx.endpoints.xrootd.capabilities import CHECKSUMS
from mpx.endpoints.xrootd.meaning import parse_sum
from mpx.engine import checksum
from mpx.engine.endpoint import Part
from mpx.errors import MpxError, NoChecksum

SMALL_BYTES = 128 * 1024  # read back rather than asked for
_AT_ONCE = 64  # files that are read together

Ask = Callable[[Sequence[Request]], list[Reply]]
Refused = Callable[[Reply, str, str], MpxError]


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
        for part in whole:
            if part not in found:
                found[part] = self._told(algorithm, part)
        return [found.get(part) or self._none("none of parts of files") for part in parts]

    def _none(self, what: str) -> NoChecksum:
        return NoChecksum(self._refusal(f"{self._host} computes {what}"))

    def _told(self, algorithm: str, part: Part) -> str | Exception:
        """Have the server compute one."""
        fields = wire.name(part.name), wire.text(algorithm.encode())
        (reply,) = self._ask([extended(wire.CHECKSUM, *fields)])
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
