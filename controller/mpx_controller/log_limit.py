"""Limits the log lines about peers."""

import asyncio
import logging
from collections import Counter

PERIOD_S = 60.0
LINES, ALL_LINES = 10, 200  # within that time, about one peer and about all together


class LogLimit:
    """At most `LINES` lines in `PERIOD_S` about each peer, and `ALL_LINES` about all; then what was left out.

    A peer may come under ever new names, so what is kept of peers is bounded as well.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._written: Counter[str] = Counter()  # lines of this period about each peer
        self._left_out: Counter[str] = Counter()  # of the same peers
        self._of_others = 0  # left out, about peers without a line in this period
        self._timer: asyncio.TimerHandle | None = None

    def warning(self, peer: str, text: str, *values: object, exc_info: bool = False) -> None:
        """Write a line about a peer, or count it; an event loop has to run."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self.close)
        if self._written[peer] < LINES and self._written.total() < ALL_LINES:
            self._written[peer] += 1
            self._log.warning(text, *values, exc_info=exc_info)
        elif peer in self._written:
            self._left_out[peer] += 1
        else:
            self._of_others += 1

    def close(self) -> None:
        """End the period: write what was left out."""
        if self._timer is not None:
            self._timer.cancel()
        for peer, count in self._left_out.items():
            self._log.warning("switch %s: %d more such lines were suppressed", peer, count)
        if self._of_others:
            self._log.warning("%d lines about other switches were suppressed", self._of_others)
        self._timer, self._of_others = None, 0
        self._written.clear()
        self._left_out.clear()
