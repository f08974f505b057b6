"""A proxy of HTTP that passes connections on (CONNECT), for tests of https_proxy."""

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class ConnectProxy:
    """Runs while in the `with` block, on loopback."""

    def __init__(self, password: str = "") -> None:
        """`password`: the value of Proxy-Authorization that it asks for."""
        self.asked: list[str] = []  # host and port of each connection
        proxy = self

        class Connecting(BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                proxy.asked.append(self.path)
                if password and self.headers.get("Proxy-Authorization") != password:
                    self.send_error(407)
                    return
                host, _, port = self.path.rpartition(":")
                with socket.create_connection((host.strip("[]"), int(port))) as there:
                    self.send_response(200)
                    self.end_headers()
                    back = threading.Thread(target=_pass_on, args=(there, self.connection))
                    back.start()
                    _pass_on(self.connection, there)
                    back.join()
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Connecting)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _pass_on(source: socket.socket, to: socket.socket) -> None:
    """Send all that comes to the other side, until it ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
