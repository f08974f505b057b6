"""`mpx serve --stdio`: what ssh starts at the other end: the server of one copy, or a lane to it.

A lane passes its input and output on to the server, which runs already; it imports little, as there may be
many.
"""

import os
import socket
import sys

from mpx.endpoints.ftp.extensions.stdio import (
    LENGTH_DIGITS,
    LaneRequest,
    encode_ready,
    parse_length,
    parse_request,
)
from mpx.errors import UsageError
from mpx.serve.standard_streams import joined


def run(asked: bytes | None = None) -> None:
    """Do what standard input asks for, or `asked` if that was read already, to its end. Raises UsageError."""
    try:
        body = _exactly(0, parse_length(_exactly(0, LENGTH_DIGITS))) if asked is None else asked
        request = parse_request(body)
    except ValueError as error:
        raise UsageError(f"mpx copy starts it at the other end of ssh, and nobody else: {error}") from None
    if isinstance(request, LaneRequest):
        _lane(request)
    else:
        from mpx.serve.stdio_server import serve

        serve(request)


def main(asked: bytes | None = None) -> None:
    """Run, and say in one line what went wrong."""
    try:
        run(asked)
    except UsageError as error:
        sys.stderr.write(f"mpx: {error}\n")
        sys.exit(error.exit_code)


def _lane(request: LaneRequest) -> None:
    """Pass our input and output on to the server, and wait until it has no more use for them."""
    streams = joined()
    streams.socket.sendall(encode_ready(None))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            server.connect(request.path)
            socket.send_fds(server, [request.use.encode("ascii")], [streams.socket.fileno()])
        except OSError as error:
            raise UsageError(f"the server of this copy is not here any more: {error.strerror}") from None
    streams.socket.close()
    # Only the end of this process tells the client that nothing more comes: ssh has one socket for both ways.
    streams.has_output_ended.wait()
    if streams.was_cut.is_set():
        sys.exit(1)  # what has come is not all


def _exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            raise ValueError("its input has ended")
        data += piece
    return data
