"""A server for `mpx probe` that counts what it is asked, and hangs up or falls silent when it is told to."""

import contextlib
import socket
import threading

from mpx.endpoints.ftp.extensions import echo
from mpx.endpoints.ftp.extensions.echo import EchoPlace


class Counting:
    """A server that counts what it is asked over the session, or over an echo if it has one.

    After `hangs_up_after` questions it closes the session; an echo that falls silent answers only what is
    asked before the window begins.
    """

    def __init__(
        self, *, has_echo: bool = False, hangs_up_after: int = 1 << 30, falls_silent: bool = False
    ) -> None:
        self.asked = 0
        self._hangs_up_after = hangs_up_after
        self._falls_silent = falls_silent
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._features = b"211 none\r\n"
        self._threads = [threading.Thread(target=self._accept)]
        self._echo = socket.socket(type=socket.SOCK_DGRAM)
        self._client: socket.socket | None = None
        if has_echo:
            self._echo.bind(("127.0.0.1", 0))
            place = EchoPlace(self._echo.getsockname()[1], b"8 bytes.")
            self._features = f"211-\r\n {place.feature}\r\n211 End\r\n".encode()
            self._threads.append(threading.Thread(target=self._send_back))

    def __enter__(self) -> "Counting":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, self._echo):
            with contextlib.suppress(
                OSError
            ):  # of the echo, which is not connected: it wakes up all the same
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self._echo.close()

    def _count(self) -> None:
        self.asked += 1
        if self.asked >= self._hangs_up_after and self._client:
            with contextlib.suppress(OSError):  # it has hung up before
                self._client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                self._client, _ = self._listener.accept()
            except OSError:
                return
            with self._client as client, contextlib.suppress(OSError):  # some are only handshakes
                client.sendall(b"220 ready\r\n")
                while data := client.recv(1000):
                    for line in data.splitlines():
                        if line == b"FEAT":
                            client.sendall(self._features)
                            continue
                        self._count()
                        client.sendall(b"200 ok\r\n")

    def _send_back(self) -> None:
        while True:
            data, sender = self._echo.recvfrom(100)
            if not data:
                return
            self._count()
            is_of_the_window = int.from_bytes(data[16:24], "big") < 1 << 32
            if not (self._falls_silent and is_of_the_window):
                self._echo.sendto(echo.answer(data, 0.0), sender)
