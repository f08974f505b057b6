"""Runs a command and puts its streams on several paths."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from mpx_controller.stock.connections import Connections
from mpx_controller.stock.netmgr.mpx_netmgr.client import Unsteered
from mpx_controller.stock.netmgr.mpx_netmgr.steering import Steering
from mpx_controller.stock.ports import StreamRecogniser

CHECKED_EVERY_S = 0.005  # at least
CHECKING_COSTS = 0.1  # of a processor, at most
AGAIN_S = 5.0  # after a failure
HANDED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
FROM_THE_TERMINAL = 0x80  # SI_KERNEL: the terminal has sent it to the command, too
NOT_FOUND, NOT_EXECUTABLE, KILLED = 127, 126, 128  # as shells say it


class Watch:
    """Places each new stream on its path, and removes those that have ended."""

    def __init__(
        self,
        steering: Steering,
        streams: StreamRecogniser,
        connections: Connections,
        complain: Callable[[str], None],
        known_error: Unsteered | None = None,
    ) -> None:
        self._steering, self._streams = steering, streams
        self._connections, self._complain = connections, complain
        self._placed: set[int] = set()
        self._complained = (
            {_cause(known_error)} if known_error else set()
        )  # each is reported once, and `known_error` was already
        self._again_s = 0.0
        self.has_seen = False  # a stream was seen, or a failure reported

    def check(self) -> float:
        """Check the connections once; return the time until the next check."""
        began_s = time.monotonic()
        try:
            self._streams, there = self._streams.seen(self._connections.now())
            self.has_seen |= bool(there)
            took_s = time.monotonic() - began_s
            if began_s >= self._again_s:
                self._follow(there, began_s)
        except (OSError, Unsteered) as error:
            took_s = time.monotonic() - began_s
            self._again_s = time.monotonic() + AGAIN_S
            if _cause(error) not in self._complained:
                self._complain(f"streams are not steered: {error}")
            self._complained.add(_cause(error))
            self.has_seen = True
        return max(CHECKED_EVERY_S, took_s / CHECKING_COSTS)

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
    """Return what identifies a failure: a controller that does not answer may do so with several errors."""
    return "away" if isinstance(error, Unsteered) and not error.status else str(error)


def run_command(command: list[str], environment: Mapping[str, str], check: Callable[[], float]) -> int:
    """Run a command to its end and return its exit status, as shells say it; `check` every now and then.

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
            signalled = signal.sigtimedwait(waited_for, check())
            if signalled and signalled.si_signo in HANDED_ON and signalled.si_code != FROM_THE_TERMINAL:
                os.kill(process, signalled.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
