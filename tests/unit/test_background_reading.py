"""What is known of the background of a path at a time, for the report."""

import threading
from typing import cast

from unit.made_up_copy import Copy

from mpx.engine.tuner import Sample
from mpx.recognition.monitor import BackgroundMonitor
from mpx.transfer.background import WORTH_A_SWITCH_S, Background


class Reads:
    """A monitor that has read two CUBIC streams."""

    lately, trouble = "CC", ""

    def observe(self, *_: object) -> None: ...


def test_a_reading_is_not_told_of_the_end_when_none_is_made() -> None:
    reads = cast(BackgroundMonitor, Reads())
    background = Background(
        Copy().carrier, "default", "cubic", threading.Event(), print, begin_monitor=lambda _: reads
    )
    for now_s in (0.0, 2.0):
        list(background.observe(now_s, Sample(4, 1000, 10**9), WORTH_A_SWITCH_S, 4))
    assert background.reading == "CC"
    list(background.observe(3.0, Sample(4, 2000, 10**6), WORTH_A_SWITCH_S - 1, 4))
    assert background.reading is None
