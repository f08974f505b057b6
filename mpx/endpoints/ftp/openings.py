"""What data connections that we open begin with, where they are not in the clear."""

import itertools
import socket
import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.errors import ConnectionLost


class Openings:
    """The openings of the data connections of one channel, each with a number of its own. For any thread."""

    def __init__(self, ticket: Ticket, direction: Direction) -> None:
        self._ticket, self._direction = ticket, direction
        self._since_s = time.monotonic()
        self._numbers = itertools.count()

    def send(
        self,
        connection: socket.socket,
        peer: str,
        check: Callable[[], None] = lambda: None,
        *,
        first: int = 0,
    ) -> None:
        """Say over a connection that `check` lets pass to which channel it belongs; closed if that fails.

        `first`: the first transfer of the ticket that it takes part in. Raises ConnectionLost, and
        as `check`.
        """
        try:
            check()
            age_s = time.monotonic() - self._since_s
            connection.sendall(self._ticket.opening(self._direction, next(self._numbers), age_s, first))
        except OSError as error:
            connection.close()
            why = error.strerror or error
            raise ConnectionLost(f"a data connection to {peer} was lost: {why}") from None
        except BaseException:
            connection.close()
            raise
