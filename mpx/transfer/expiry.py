"""Whether what lets us in lasts as long as the copy: said while there is time to do something about it."""

import math
from collections.abc import Callable
from datetime import UTC, datetime

from mpx.engine.endpoint import Admission
from mpx.report import OnNote, Severity

LOOK_S = 30.0  # between two looks; the credential may have been renewed
FIRST_S = 10.0  # of a copy, before its rate says anything


class Expiry:
    """Foresees that a credential expires before a copy ends. Times are of time.time(); one thread uses it."""

    def __init__(self, admission: Callable[[], Admission | None], note: OnNote) -> None:
        """`admission`: what lets us in and ends first; None: nothing does."""
        self._admission, self._note = admission, note
        self._next_s = FIRST_S
        self._told_s: float | None = None  # until when, as it was told

    def observe(self, now_s: float, elapsed_s: float, lasts_s: float) -> None:
        """Take how long the copy has run, and how much longer it lasts at its present rate."""
        if elapsed_s < self._next_s:
            return
        self._next_s = elapsed_s + LOOK_S
        admission = self._admission()
        if admission is None or math.isinf(lasts_s):
            return
        until_s = admission.until_s
        if now_s + lasts_s <= until_s or until_s == self._told_s:
            return
        self._told_s = until_s
        self._note(
            f"{admission.what} expires at {_clock(until_s)} and at the present rate this copy ends about "
            f"{_clock(now_s + lasts_s)}: {admission.renewal}; what is left by then is continued by the same "
            "command",
            Severity.NOTICE,
        )


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
