"""A server on loopback that says what it is told, whatever it is asked, and hangs up."""

import atexit
import contextlib
import socket
import threading

PATIENCE_S = 20.0


class CannedServer:
    """One connection after the other; `says` is what the next one is told."""

    def __init__(self) -> None:
        self.says = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()
        atexit.register(self._listener.close)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(PATIENCE_S)
                connection.recv(4096)  # else what nobody has read would have the answer cut by a reset
                connection.sendall(self.says)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
