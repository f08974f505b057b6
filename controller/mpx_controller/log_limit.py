"""Limits the log lines about one peer."""

import asyncio
import logging

LINES, PERIOD_S = 10, 60.0  # of one peer, within that time


class LogLimit:
    """At most `LINES` lines in `PERIOD_S` about each peer; then one line with how many were left out."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._counts: dict[str, int] = {}  # lines of each peer in its period, written or not

    def warning(self, peer: str, text: str, *values: object, exc_info: bool = False) -> None:
        """Write a line about a peer, or count it; an event loop has to run."""
        count = self._counts.get(peer, 0)
        if count == 0:
            asyncio.get_running_loop().call_later(PERIOD_S, self._period_ends, peer)
        self._counts[peer] = count + 1
        if count < LINES:
            self._log.warning(text, *values, exc_info=exc_info)

    def close(self) -> None:
        """Write what was left out, of all peers."""
        for peer in list(self._counts):
            self._period_ends(peer)

    def _period_ends(self, peer: str) -> None:
        left_out = self._counts.pop(peer, 0) - LINES
        if left_out > 0:
            self._log.warning("switch %s: %d more such lines were suppressed", peer, left_out)
