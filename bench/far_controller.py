"""Has a host of a lab reach, on its own loopback, a controller that runs outside the lab."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mpx_lab.lab_host import LabHost
from mpx_lab.namespace import inside


@contextmanager
def reached_from(host: LabHost, port: int, there: int = 0) -> Iterator[str]:
    """Yield the URL at which programs on the host reach what listens on our loopback (`there`: its port)."""
    with contextlib.ExitStack() as ended:
        listening = inside(host.netns, lambda: socket.create_server(("127.0.0.1", there)))
        ended.callback(listening.close)
        ended.callback(listening.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=_accept, args=(listening, port), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _accept(listening: socket.socket, port: int) -> None:
    with suppress(OSError):  # it was closed
        while True:
            caller, _ = listening.accept()
            try:
                there = socket.create_connection(("127.0.0.1", port), 5)
            except OSError:
                caller.close()
                continue
            for a, b in ((caller, there), (there, caller)):
                threading.Thread(target=_pump, args=(a, b), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
