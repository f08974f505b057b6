"""Whether one processor carries as much of a copy as several: it is tried where one is kept busy. Pure.

The streams of a download share Python's lock: what several processors bring is soon eaten up by handing it
over. Which is so depends on the machine, its network and its files, so both ways are measured.
"""

import math

SETTLES_S, SPAN_S = 0.3, 1.0  # after each change, and how long goodput is measured then
BUSY = 0.5  # of a processor: less is not worth a trial
ENOUGH = 0.93  # of the goodput with several processors: one is enough
MUCH_LESS = 0.7  # than one has shown to carry: others use it too, or something else is in the way
LOOK_S, LATEST_LOOK_S = 5.0, 60.0  # until several are tried again while one is enough, longer each time ...
AGAIN_S, LATEST_S = 5.0, 600.0  # ... and until one is tried again where it was not
LATER = 2.0  # factor of both


class ProcessorGain:
    """Decides for one copy. Give it what is measured about every 100 ms."""

    def __init__(self) -> None:
        self.is_enough = False  # one processor is, or is being tried
        self._is_trial = False  # of one, or of several while one is enough
        self._since_s = -math.inf  # the last change
        # When the measurement began, and the bytes and processor seconds up to then:
        self._began: tuple[float, int, float] | None = None
        self._carried_bps = 0.0  # before the trial, or by one processor
        self._before_bps = 0.0  # in the measurement before the last one, by as many processors
        self._streams = 0
        self._next_s, self._look_s, self._again_s = 0.0, LOOK_S, AGAIN_S

    def observe(self, now_s: float, streams: int, arrived_bytes: int, cpu_s: float) -> bool:
        """Take what has arrived and what processor time all threads took so far; return `is_enough`.

        With another number of streams a measurement begins anew.
        """
        if streams != self._streams:
            self._streams, self._since_s, self._began = streams, now_s, None
            self._before_bps = 0.0
        if now_s - self._since_s < SETTLES_S:
            return self.is_enough
        if self._began is None:
            self._began = (now_s, arrived_bytes, cpu_s)
        began_s, began_bytes, began_cpu_s = self._began
        took_s = now_s - began_s
        if took_s < SPAN_S:
            return self.is_enough
        self._began = (now_s, arrived_bytes, cpu_s)
        self._judge(now_s, 8 * (arrived_bytes - began_bytes) / took_s, (cpu_s - began_cpu_s) / took_s)
        return self.is_enough

    def _judge(self, now_s: float, goodput_bps: float, busy: float) -> None:
        before_bps, self._before_bps = self._before_bps, goodput_bps
        is_steady = ENOUGH * max(before_bps, goodput_bps) <= min(before_bps, goodput_bps)
        if self._is_trial and self.is_enough:
            self._is_trial = False
            if goodput_bps >= ENOUGH * self._carried_bps:
                self._carried_bps = goodput_bps
                self._stay(now_s)
            else:
                self._several(now_s)
        elif self._is_trial:  # of several processors
            self._is_trial = False
            if ENOUGH * goodput_bps > self._carried_bps:
                self._several(now_s)
            else:
                self._change(now_s, is_enough=True)
                self._stay(now_s)
        elif self.is_enough:
            if goodput_bps < MUCH_LESS * self._carried_bps:
                self._several(now_s)
            elif now_s >= self._next_s:
                self._carried_bps = goodput_bps
                self._try(now_s, is_enough=False)
        elif now_s >= self._next_s and busy >= BUSY and is_steady:  # a copy that grows wins any trial
            self._carried_bps = goodput_bps
            self._try(now_s, is_enough=True)

    def _try(self, now_s: float, *, is_enough: bool) -> None:
        self._is_trial = True
        self._change(now_s, is_enough=is_enough)

    def _stay(self, now_s: float) -> None:
        self._next_s = now_s + self._look_s
        self._look_s = min(LATEST_LOOK_S, LATER * self._look_s)

    def _several(self, now_s: float) -> None:
        self._next_s, self._look_s = now_s + self._again_s, LOOK_S
        self._again_s = min(LATEST_S, LATER * self._again_s)
        self._change(now_s, is_enough=False)

    def _change(self, now_s: float, *, is_enough: bool) -> None:
        self.is_enough, self._since_s, self._began, self._before_bps = is_enough, now_s, None, 0.0
