"""Run a command with its streams on several paths, which it knows nothing of."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from mpx_controller.stock.connections import Connections
from mpx_controller.stock.netmgr.mpx_netmgr.client import Unsteered
from mpx_controller.stock.netmgr.mpx_netmgr.steering import Steering
from mpx_controller.stock.ports import Streams

LOOKS_EVERY_S = 0.005  # at least
LOOKING_COSTS = 0.1  # of a processor, at most
AGAIN_S = 5.0  # after a failure
HANDED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
FROM_THE_TERMINAL = 0x80  # SI_KERNEL: who sits there has sent it to the command, too
NOT_FOUND, NOT_EXECUTABLE, KILLED = 127, 126, 128  # as shells say it


class Watch:
    """Has each new stream put on its path, and those that are gone taken off theirs."""

    def __init__(
        self,
        steering: Steering,
        streams: Streams,
        connections: Connections,
        complain: Callable[[str], None],
        said: Unsteered | None = None,
    ) -> None:
        self._steering, self._streams = steering, streams
        self._connections, self._complain = connections, complain
        self._placed: set[int] = set()
        self._said = {_cause(said)} if said else set()  # each is complained of once, `said` already
        self._again_s = 0.0
        self.has_told = False  # of a stream, or why there is none

    def look(self) -> float:
        """Look once, and return how long to wait until the next."""
        began_s = time.monotonic()
        try:
            self._streams, there = self._streams.seen(self._connections.now())
            self.has_told |= bool(there)
            took_s = time.monotonic() - began_s
            if began_s >= self._again_s:
                self._follow(there, began_s)
        except (OSError, Unsteered) as error:
            took_s = time.monotonic() - began_s
            self._again_s = time.monotonic() + AGAIN_S
            if _cause(error) not in self._said:
                self._complain(f"streams are not steered: {error}")
            self._said.add(_cause(error))
            self.has_told = True
        return max(LOOKS_EVERY_S, took_s / LOOKING_COSTS)

    def _follow(self, there: Sequence[int], now_s: float) -> None:
        pair = self._streams.pair
        for port in sorted(self._placed.difference(there)):
            self._placed.discard(port)
            self._steering.remove(pair, port)
        for port in there:
            if port not in self._placed:
                self._steering.place(pair, port, now_s)
                self._placed.add(port)
        if now_s >= self._steering.next_s():
            self._steering.keep(now_s)


def _cause(error: Exception) -> str:
    """Return what tells complaints apart: a controller that does not answer may do so in several ways."""
    return "away" if isinstance(error, Unsteered) and not error.status else str(error)


def run_command(command: list[str], environment: Mapping[str, str], look: Callable[[], float]) -> int:
    """Run a command to its end and return its exit status, as shells say it; `look` every now and then.

    Signals that only we are sent are handed on. Raises OSError where it cannot be started.
    """
    waited_for = {*HANDED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        process = os.posix_spawnp(command[0], command, environment, setsigmask=before)
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else KILLED - code
            told = signal.sigtimedwait(waited_for, look())
            if told and told.si_signo in HANDED_ON and told.si_code != FROM_THE_TERMINAL:
                os.kill(process, told.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
