"""What has been received of a session, cut into packets."""

import struct
from collections.abc import Iterator

from mpx.endpoints.sftp.wire import WireError

LARGEST_PACKET_BYTES = 1024 * 1024
_LENGTH = struct.Struct(">I")
_SPARE_BYTES = 256 * 1024  # room for what is received at once


class Inbox:
    """A buffer: bytes are received into `room`, and handed out as packets."""

    def __init__(self) -> None:
        self._view = memoryview(bytearray(LARGEST_PACKET_BYTES + 4 + _SPARE_BYTES))
        self._begin = 0  # of what was not handed out yet
        self._end = 0

    def room(self) -> memoryview:
        """Return where to receive to; packets that were handed out are gone with it."""
        if self._begin:
            held = self._end - self._begin
            if not held or len(self._view) - self._end < _SPARE_BYTES:
                self._view[:held] = self._view[self._begin : self._end]
                self._begin, self._end = 0, held
        return self._view[self._end :]

    def received(self, size_bytes: int) -> None:
        """Note how much was received there."""
        self._end += size_bytes

    @property
    def heard(self) -> bytes:
        """What has come and is no packet yet."""
        return bytes(self._view[self._begin : self._end])

    def packets(self) -> Iterator[memoryview]:
        """Yield each packet that is there whole, without its length; raises WireError for one too large."""
        while self._end - self._begin >= 4:
            (size,) = _LENGTH.unpack(self._view[self._begin : self._begin + 4])
            if not 0 < size <= LARGEST_PACKET_BYTES:
                raise WireError(f"a packet of {size} bytes")
            end = self._begin + 4 + size
            if end > self._end:
                return
            packet = self._view[self._begin + 4 : end]
            self._begin = end
            yield packet
