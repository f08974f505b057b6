"""A truthful FTP server over files in memory, of which whatever it says and sends can be bent (see bends.py).

Places: "greeting"; a verb, for the reply that ends its command; "150", that which begins data; "data", what
is sent of a file, "damage" likewise, "listing" and "line"; "block", a header of MODE E; "offset"; "size";
"stored"; "arrival", what becomes of an upload under way; "marker", what is said of it meanwhile; and
"VERB deed", what becomes of a command that changes something.
"""

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from interop import bends
from interop.bends import Bend, Ending, Piece
from interop.storing_server import BLOCK_BYTES, FEATURES, StoringDialogue, StoringServer

from mpx.endpoints.ftp.framing import EOD, EOF, BlockHeader

DEEDS = ("STOR", "ESTO", "RETR", "ERET", "RNFR", "RNTO", "MKD", "DELE", "MFMT")
REFUSED = "550 Permission denied"


class _UploadEnded(Exception):
    """An upload has ended before its end; the reply says how."""


class BentDialogue(StoringDialogue):
    """One control connection."""

    server: "BentServer"
    _came_bytes = 0  # of the upload under way
    _arrival: Sequence[Bend] = ()

    def say(self, text: str) -> None:
        place = {"150": "150", "111": "marker"}.get(text[:3], self.verb)
        pieces: list[Piece] = [text.encode("utf-8", "surrogateescape") + b"\r\n"]
        for bend in self.server.due(place):
            pieces = bends.bent(pieces, bends.REPLIES, bend)
        self._put(self.control, pieces)

    def _put(self, connection: socket.socket, pieces: Sequence[Piece]) -> None:
        """Send pieces. Raises OSError where the connection has ended, by us or by them."""
        for piece in pieces:
            if isinstance(piece, bytes):
                connection.sendall(piece)
            elif piece is Ending.SILENT:
                self._stay()
            else:
                if piece is Ending.RESET:
                    self._reset(connection)
                else:
                    connection.shutdown(socket.SHUT_RDWR)
                raise ConnectionResetError(piece)

    def _stay(self) -> None:
        """Take whatever comes and say nothing, until the client goes."""
        while self.control.recv(4096):
            pass
        raise ConnectionResetError

    def run(self) -> None:
        with contextlib.suppress(ValueError):  # what is no question is no answer either
            super().run()

    # --- what changes something ------------------------------------------------------------------------

    def answer(self, verb: str, argument: str) -> str | None:
        for bend in self.server.due(f"{verb} deed"):
            if bend.how == "refused":
                return REFUSED
            if bend.how == "only said":
                said = {"RNFR": "350 to?", "MKD": f'257 "{argument}"', "STOR": "226 done", "ESTO": "226 done"}
                return said.get(verb, "250 ok")
            self._answer(verb, argument)
            return REFUSED
        return self._answer(verb, argument)

    def _answer(self, verb: str, argument: str) -> str | None:
        try:
            return super().answer(verb, argument)
        except _UploadEnded as ended:
            return str(ended)

    def receive(self, content: bytearray | None = None, start: int = 0) -> bytes:
        content = bytearray() if content is None else content
        self._came_bytes, self._arrival = 0, self.server.due("arrival")
        super().receive(content, start)
        pieces: list[Piece] = [bytes(content)]
        for bend in self.server.due("stored"):
            pieces = bends.bent(pieces, bends.STORED, bend)
        content[:] = b"".join(piece for piece in pieces if isinstance(piece, bytes))
        return bytes(content)

    def took(self, start: int, end: int, connections: Sequence[socket.socket]) -> None:
        if self.blocks:
            self.say(f"111 Range Marker {start}-{end}")
        self._came_bytes += end - start
        for bend in self._arrival:
            if bend.n <= self._came_bytes:
                self._end_upload(bend.how, connections)

    def _end_upload(self, how: str, connections: Sequence[socket.socket]) -> None:
        """End an upload in the middle; `how` is one of bends.ARRIVALS."""
        if how == "silent":
            self._stay()
        if how == "session reset":
            self._put(self.control, [Ending.RESET])
        for connection in connections[:1] if how == "one reset" else connections:
            if how.endswith("reset"):
                self._reset(connection)
            else:
                connection.shutdown(socket.SHUT_RDWR)
        self.close()
        raise _UploadEnded("226 done" if how == "closed and done" else "426 the data connection was lost")

    @staticmethod
    def _reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    # --- what it says and sends of files -----------------------------------------------------------

    def size(self, name: str) -> int:
        size = super().size(name)
        for bend in self.server.due("size"):
            size = bends.SIZES[bend.how](size, bend.n)
        return size

    def start(self) -> int:
        return self._offset(super().start())

    def _offset(self, offset: int) -> int:
        for bend in self.server.due("offset"):
            offset = bends.OFFSETS[bend.how](offset, bend.n)
        return offset

    def part(self, argument: str) -> tuple[int, int, str]:
        start, size, name = super().part(argument)
        return self._offset(start), size, name

    def send_lines(self, lines: list[str]) -> str | None:
        sent = b""
        for line in lines:
            pieces: list[Piece] = [line.encode("utf-8", "surrogateescape")]
            for bend in self.server.due("line"):
                pieces = bends.bent(pieces, bends.LINES, bend)
            sent += b"".join(piece for piece in pieces if isinstance(piece, bytes))
        return self.send_stream(sent)

    def transmit(self, data: socket.socket, content: bytes) -> str:
        is_file = self.verb in ("RETR", "ERET")
        pieces: list[Piece] = [content]
        for bend in self.server.due("data" if is_file else "listing"):
            pieces = bends.bent(pieces, bends.DATA, bend)
        for bend in self.server.due("damage") if is_file else ():
            pieces = bends.bent(pieces, bends.DAMAGE, bend)
        if is_file:
            self.server.claim(b"".join(piece for piece in pieces if isinstance(piece, bytes)))
        try:
            self._put(data, self._blocks(pieces) if self.blocks else pieces)
        except OSError:
            if Ending.SILENT in pieces:
                raise
            return "426 the data connection was lost"
        return "226 done"

    def _blocks(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Put what is sent into blocks; where it has an ending, no block says so."""
        content = b"".join(piece for piece in pieces if isinstance(piece, bytes))
        sent: list[Piece] = []
        for at in range(0, len(content), BLOCK_BYTES):
            block = content[at : at + BLOCK_BYTES]
            sent += [*self._header(BlockHeader(0, len(block), at)), block]
        endings = [piece for piece in pieces if isinstance(piece, Ending)]
        return [*sent, *(endings or self._header(BlockHeader(EOD | EOF, 0, 1)))]

    def _header(self, header: BlockHeader) -> list[Piece]:
        pieces: list[Piece] = [header.pack()]
        for bend in self.server.due("block"):
            pieces = bends.bent(pieces, bends.BLOCKS, bend)
        return pieces


class BentServer(StoringServer):
    """Runs while in the `with` block; bends what `bends` say, and else says nothing but the truth."""

    dialogue = BentDialogue

    def __init__(
        self,
        bends: Sequence[Bend],
        files: Mapping[str, bytes] | None = None,
        *,
        features: tuple[str, ...] = FEATURES,
        checksums: bool = False,
        mode_e: bool = False,
    ) -> None:
        super().__init__(files=files, features=features, checksums=checksums, mode_e=mode_e)
        self.bends = tuple(bends)
        self.claims: list[bytes] = []  # what was sent as files, or parts of them
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    def due(self, place: str) -> list[Bend]:
        """Return how this occurrence of a place is bent."""
        with self._counting:
            occurrence = self._counts[place]
            self._counts[place] += 1
        return [bend for bend in self.bends if bend.place == place and bend.hits(occurrence)]

    def claim(self, content: bytes) -> None:
        self.claims.append(content)
