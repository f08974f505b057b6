"""Times a transfer in the same way for every tool: from its first 150 to its last 226.

A relay on loopback passes control connections on and notes when the server's replies come by. Data
connections do not pass through it.
"""

import re
import selectors
import socket
import threading
import time

_BEGIN = re.compile(rb"^1(?:50|25)[ -]", re.MULTILINE)
_END = re.compile(rb"^226[ -]", re.MULTILINE)


class ControlClock:
    """A relay in front of a server's control port."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._first_s: float | None = None
        self._last_s: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "ControlClock":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        self._listener.close()

    def reset(self) -> None:
        """Forget what was timed."""
        self._first_s = self._last_s = None

    @property
    def data_s(self) -> float:
        """Seconds from the first 150 or 125 to the last 226 since `reset`."""
        assert self._first_s is not None and self._last_s is not None, "no transfer was seen"
        return self._last_s - self._first_s

    def _run(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._listener, selectors.EVENT_READ, None)
            while not self._stop.is_set():
                for key, _ in waiting.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)  # nothing else is registered
                    if key.data is None:
                        self._accept(waiting)
                    elif key.fd in waiting.get_map():  # its other end may have closed it just now
                        self._pass_on(waiting, source, *key.data)

    def _accept(self, waiting: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._server_port))
        for connection in (client, server):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting.register(client, selectors.EVENT_READ, (server, False))
        waiting.register(server, selectors.EVENT_READ, (client, True))

    def _pass_on(
        self, waiting: selectors.BaseSelector, source: socket.socket, target: socket.socket, replies: bool
    ) -> None:
        now = time.perf_counter()
        try:
            data = source.recv(65536)
            if replies:
                self._note(data, now)  # before it is passed on, as its reader may ask for the time at once
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            for connection in (source, target):
                try:
                    waiting.unregister(connection)
                except KeyError:
                    continue
                connection.close()

    def _note(self, data: bytes, now: float) -> None:
        if self._first_s is None and _BEGIN.search(data):
            self._first_s = now
        if _END.search(data):
            self._last_s = now
