"""What the kernel lets through to the echo: datagrams of the right form with the token of a session.

So a flood of anything else costs neither this program a look nor those who probe their answers. Written in
the instructions of classic BPF, which every Linux checks and runs before a datagram is put into the buffer
of a socket; it needs no privileges.
"""

import ctypes
import socket
import struct
from collections.abc import Collection, Sequence

from mpx.endpoints.ftp.extensions import echo as echo_wire

MOST_TOKENS = 300  # of more sessions only the form is looked at: old kernels have room for no longer program
_SO_ATTACH_FILTER = 26  # Linux; the socket module has no name for it
_UDP_BYTES = 8  # the header, which the program sees as well
_LENGTH, _WORD_AT, _EQUAL, _RETURN = 0x80, 0x20, 0x15, 0x06
_ALL, _NOTHING = 0xFFFFFFFF, 0  # bytes of the datagram that are kept
_INSTRUCTION = struct.Struct("=HBBI")  # code, how far to jump if true, and if false, value
_PROGRAM = struct.Struct("@HP")  # instructions, and where they are

_Instruction = tuple[int, int, int, int]


def attach(echo: socket.socket, tokens: Collection[bytes] | None) -> None:
    """Let a UDP socket have questions with one of these tokens only, or with any (None); raises OSError."""
    code = b"".join(_INSTRUCTION.pack(*each) for each in _instructions(tokens))
    kept = ctypes.create_string_buffer(code, len(code))
    program = _PROGRAM.pack(len(code) // _INSTRUCTION.size, ctypes.addressof(kept))
    echo.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def _instructions(tokens: Collection[bytes] | None) -> Sequence[_Instruction]:
    """Return the program: of a token its first four bytes are enough to keep out who has to guess it."""
    first, second = (int.from_bytes(kind, "big") for kind in echo_wire.KINDS_ASKED)
    found: list[_Instruction] = [
        (_LENGTH, 0, 0, 0),
        (_EQUAL, 1, 0, _UDP_BYTES + echo_wire.BYTES),
        (_RETURN, 0, 0, _NOTHING),
        (_WORD_AT, 0, 0, _UDP_BYTES),
        (_EQUAL, 2, 0, first),
        (_EQUAL, 1, 0, second),
        (_RETURN, 0, 0, _NOTHING),
    ]
    if tokens is None or len(tokens) > MOST_TOKENS:
        return [*found, (_RETURN, 0, 0, _ALL)]
    found.append((_WORD_AT, 0, 0, _UDP_BYTES + echo_wire.TOKEN_AT))
    for token in tokens:
        found += [(_EQUAL, 0, 1, int.from_bytes(token[:4], "big")), (_RETURN, 0, 0, _ALL)]
    return [*found, (_RETURN, 0, 0, _NOTHING)]
