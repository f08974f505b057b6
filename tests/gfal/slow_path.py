"""A path of a bounded rate in front of a server, which can fall silent: plain TCP, whatever is spoken."""

import contextlib
import math
import socket
import threading
import time
from collections.abc import Iterator
from typing import Self

BLOCK_BYTES = 16384


@contextlib.contextmanager
def slowed(url: str, rate_bps: float) -> Iterator[str]:
    """The URL by which a server is reached over such a path."""
    with SlowPath(int(url.split(":")[2].split("/")[0]), rate_bps) as path:
        yield path.url(url)


class SlowPath:
    """Relays connections on loopback to a port there while in the `with` block."""

    def __init__(self, port: int, rate_bps: float) -> None:
        """`rate_bps`: in each direction of each connection."""
        self._to, self._rate_bps = port, rate_bps
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._goes = threading.Event()
        self._goes.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._goes.set()
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def url(self, url: str) -> str:
        """Return how what is at the server is reached by this path."""
        return url.replace(f":{self._to}", f":{self.port}")

    def hurry(self) -> None:
        """Pass all on as it comes from now on."""
        self._rate_bps = math.inf

    def fall_silent(self) -> None:
        """Pass nothing on from now on."""
        self._goes.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted = self._listener.accept()[0]
                try:
                    ends = [accepted, socket.create_connection(("127.0.0.1", self._to))]
                except OSError:  # the server is gone, and may come back
                    accepted.close()
                    continue
                self._open += ends
                for source, sink in (ends, ends[::-1]):
                    source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * BLOCK_BYTES)
                    threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        free_s = time.monotonic()
        with contextlib.suppress(OSError):
            while data := source.recv(BLOCK_BYTES):
                self._goes.wait()
                sink.sendall(data)
                free_s = max(free_s, time.monotonic() - 0.1) + 8 * len(data) / self._rate_bps
                time.sleep(max(0.0, free_s - time.monotonic()))
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
