"""Input and output of this process as one socket, whatever they are: sshd gives pipes or a socket."""

import os
import socket
import threading
from contextlib import suppress

_PIECE_BYTES = 256 * 1024


class StandardStreams:
    """Both as one socket; an end of one direction is passed on as far as it can be."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.has_input_ended = threading.Event()  # the client has gone
        self.has_output_ended = threading.Event()  # `socket` has
        self.was_cut = threading.Event()  # not all of it could be written


def joined(reads: int = 0, writes: int = 1) -> StandardStreams:
    """Begin to pass on what comes and goes."""
    ours, theirs = socket.socketpair()
    streams = StandardStreams(ours)
    for name, run, words in (
        ("mpx-serve-in", _copy_in, (reads, theirs, streams.has_input_ended)),
        ("mpx-serve-out", _copy_out, (theirs, writes, streams.has_output_ended, streams.was_cut)),
    ):
        threading.Thread(target=run, args=words, name=name, daemon=True).start()
    return streams


def _copy_in(source: int, target: socket.socket, ended: threading.Event) -> None:
    with suppress(OSError):
        while data := os.read(source, _PIECE_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        while os.read(source, _PIECE_BYTES):  # who uses the other end may have left before the client
            pass
    ended.set()


def _copy_out(source: socket.socket, target: int, ended: threading.Event, cut: threading.Event) -> None:
    try:
        while data := source.recv(_PIECE_BYTES):
            view = memoryview(data)
            while view:
                view = view[os.write(target, view) :]
    except OSError:
        cut.set()
    ended.set()
