"""Which of many commands are sent ahead of the replies to those before. Pure.

As many as a server's queue takes, and no more bytes than the buffers between two programs hold: a server that
does not read on until its replies are read would else wait for us, and we for it.
"""

from collections.abc import Sequence

MOST_COMMANDS = 400  # on the way at once; a stock server's queue holds 1000
MOST_BYTES = 64 * 1024  # likewise; any two programs hold so much between them


class CommandWindow:
    """Commands that are answered in their order. More are due once half of what may be out is answered.

    `most`: how many may be out at once.
    """

    def __init__(self, commands: Sequence[bytes], most: int = MOST_COMMANDS) -> None:
        self._commands = commands
        self._most = most
        self._sent = 0
        self._answered = 0
        self._waiting_bytes = 0  # of commands that were sent and are not answered

    def due(self) -> Sequence[bytes]:
        """Return what is to be sent now, before the next reply is read."""
        if self._sent - self._answered > self._most // 2 or self._waiting_bytes > MOST_BYTES // 2:
            return ()
        first, most = self._sent, min(len(self._commands), self._answered + self._most)
        while self._sent < most and self._waiting_bytes < MOST_BYTES:
            self._waiting_bytes += len(self._commands[self._sent])
            self._sent += 1
        return self._commands[first : self._sent]

    def answered(self) -> None:
        """Note that the next reply has come."""
        self._waiting_bytes -= len(self._commands[self._answered])
        self._answered += 1
