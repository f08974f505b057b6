"""The receiver of bursts: a server that discards the data.

`mpx serve` does so with its command SINK (docs/extensions.md). On other servers the data is stored to the
null device; it must exist and stay empty, so that no file is made or filled.
"""

import socket
import struct
from collections.abc import Callable
from contextlib import closing

from mpx.endpoints.ftp.data_address import connect_data, passive_port
from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.refusals import reply_error
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.wire import command
from mpx.errors import ConnectionLost, UsageError
from mpx.location import Location
from mpx.net import tcp

NULL_DEVICE = "/dev/null"
_TIMEOUT_S = 10.0
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # struct linger


class Sink:
    """A session whose data connections lead to nothing, one after the other. Used by one thread."""

    def __init__(self, location: Location, address: tcp.Address, stop: Callable[[], bool]) -> None:
        """Log in at that address of the server, and see that data is taken; else raises MpxError."""
        options = SessionOptions(
            connect_timeout_s=_TIMEOUT_S, timeout_s=_TIMEOUT_S, address=address, stop=stop
        )
        self._session = log_in(ClientSession(location, options))
        try:
            self._is_ours = sink.FEATURE in self._session.features
            self._check()
            self._prepare()
        except BaseException:
            self.close()
            raise

    def open(self, congestion: str) -> socket.socket:
        """Return a connection whose data is discarded, and which is reset when it is closed."""
        self._session.send(self._command)
        connection = connect_data(self._session, self._port, congestion=congestion)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        return connection

    def closed(self) -> None:
        """Make ready for the next connection, as the last one was reset."""
        self._session.final_reply()  # of a transfer that was cut: whatever it says
        self._check_empty()
        self._prepare()

    def close(self) -> None:
        """End the session."""
        self._session.close()

    @property
    def _command(self) -> bytes:
        return command(sink.VERB) if self._is_ours else command("STOR", NULL_DEVICE)

    def _prepare(self) -> None:
        self._port = passive_port(self._session, (), Direction.UP)

    def _check(self) -> None:
        peer = self._session.peer
        if not self._is_ours and self._session.location.name != NULL_DEVICE:
            raise UsageError(
                f"--mode active needs a server that discards data, which {peer} does not offer; "
                f"run mpx serve there, or probe {peer}{NULL_DEVICE} if it stores to that"
            )
        mode = self._session.call(command("MODE", "S"))
        if not mode.is_ok:
            raise reply_error(mode, f"{peer} does not accept MODE S", ConnectionLost)
        self._check_empty()
        self._prepare()
        self._session.send(self._command)
        try:
            with closing(connect_data(self._session, self._port)) as connection:
                connection.sendall(b"\0")
                connection.shutdown(socket.SHUT_WR)  # inside TLS an end has to be said
        except (ConnectionLost, OSError) as error:
            refusal = self._session.poll_reply(tcp.STOP_INTERVAL_S)
            if refusal is None or refusal.is_preliminary:
                raise ConnectionLost(f"{peer} accepts no data: {error}") from None
            raise reply_error(refusal, f"{peer} accepts no data", UsageError) from None
        reply = self._session.final_reply()
        if not reply.is_ok:
            raise reply_error(reply, f"{peer} accepts no data", UsageError)
        self._check_empty()

    def _check_empty(self) -> None:
        """Raise UsageError where what is called the null device is none."""
        if self._is_ours:
            return
        size = self._session.call(command("SIZE", NULL_DEVICE))
        if size.code != 213 or size.text.strip() != "0":
            raise UsageError(
                f"{NULL_DEVICE} at {self._session.peer} is not the null device ({size.reason}), so no data "
                "can be discarded there; run mpx serve there"
            )
