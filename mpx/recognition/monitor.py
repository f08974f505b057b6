"""Classifies the background during a copy, from round-trip times and goodput, and decides when to switch.

The bursts of OPS (Anvari and Lu, Computers 10(6):76, 2021) are the transfer's own data here, so the transfer
does not pause. Measurements right after the start or a switch show only our own start, and are left out.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable

from mpx.choices import BBR, CUBIC
from mpx.engine.tuner import Sample
from mpx.errors import UsageError
from mpx.recognition.classifier import Classifier
from mpx.recognition.mix import Mix
from mpx.recognition.observation import DIPS_BBR, Own
from mpx.recognition.policy import Switch
from mpx.recognition.pulses.rests import PulseRests
from mpx.recognition.switching import SwitchHysteresis
from mpx.recognition.watch import Watches
from mpx.rtt.schedule import SINGLE_INTERVAL_S
from mpx.units import counted

READ_S = 1.0  # between two readings
LATELY_S = 5.0  # so long a reading says what is on the path
SETTLES_S, SETTLES_RTT = 3.0, 10.0  # left out after the start or a switch: the sum of both
KEEP_S = 30.0  # older goodput is not used


class Loading(threading.Thread):
    """Loads a model in a thread of its own: it may take seconds where numpy is on a slow file system."""

    def __init__(self, load: Callable[[], Classifier]) -> None:
        super().__init__(name="mpx-model", daemon=True)
        self.model: Classifier | None = None  # written once by this thread, as `trouble` is
        self.trouble = ""  # why loading failed
        self._load = load
        self._begun = False

    def begin(self) -> None:
        """Start loading, once."""
        if not self._begun:
            self._begun = True
            try:
                self.start()
            except RuntimeError as error:  # this user may start no further thread
                self.trouble = str(error)

    def run(self) -> None:
        """Load."""
        try:
            self.model = self._load()
        except UsageError as error:
            self.trouble = str(error)
        except Exception as error:  # whatever a broken installation of numpy raises; the copy goes on
            self.trouble = f"{type(error).__name__}: {error}"


class BackgroundMonitor:
    """The background of one copy, and its congestion control: asks for a switch when one is due."""

    def __init__(
        self,
        loading: Loading,
        watch: Watches,
        hysteresis: SwitchHysteresis,
        congestion: str,
        began_s: float | None = None,
    ) -> None:
        """`began_s` is when its first byte moved (monotonic clock), None where that is not known yet."""
        self.latest: Mix | None = None  # the last reading
        self.trouble = ""  # why there are no readings
        self.has_no_model = False  # which is why
        self._cannot = False  # and there will be none
        self._loading, self._watch, self._hysteresis = loading, watch, hysteresis
        self._congestion = congestion
        self._began_s = began_s  # when the present streams started
        self._read_s = self._seen_s = 0.0
        self._before: tuple[float, int] | None = None
        self._goodput: deque[tuple[float, float]] = deque()
        self._readings: Counter[str] = Counter()  # by mix
        self._rests = PulseRests()

    def observe(self, now_s: float, sample: Sample) -> Switch | None:
        """Take what was moved up to now (monotonic clock); return a switch if one is due.

        The caller then calls `switched` or `refused`.
        """
        self._seen_s = now_s
        if self._cannot:
            return None
        self._count(now_s, sample.arrived_bytes)
        if self._began_s is None and sample.arrived_bytes:
            self._began_s = now_s
        if self._began_s is None or now_s < self._read_s + READ_S or not sample.streams:
            return None
        settled_s = self._began_s + SETTLES_S + SETTLES_RTT * (sample.rtt_s or 0.0)
        if self._rests.cut_short(now_s, self._goodput):
            self._watch.rest(now_s)
        since_s = max(settled_s, self._rests.until_s)
        if now_s < since_s:
            return None
        self._loading.begin()
        if self._loading.trouble:
            self.has_no_model = True
            self._give_up(self._loading.trouble)
        if self._loading.model is None:
            return None
        self._watch.begin()
        self.trouble = self._watch.trouble
        if self.trouble:
            return None
        try:
            return self._read(self._loading.model, now_s, since_s, sample.streams)
        except UsageError as error:
            self._give_up(str(error))
        except OSError as error:  # no descriptor is free at the moment, to ask what may be used
            self.trouble = str(error)
        except Exception as error:  # for example no memory for numpy: the copy goes on without
            self._give_up(f"{type(error).__name__}: {error}")
        return None

    def _give_up(self, why: str) -> None:
        self.trouble, self._cannot = why, True
        self._watch.end()

    def _read(self, model: Classifier, now_s: float, since_s: float, streams: int) -> Switch | None:
        """Classify the background, once there is a whole window of probes since then."""
        responses = self._watch.responses(since_s)
        own = Own(BBR if self._congestion == BBR else CUBIC, streams, dips=responses is not None)
        series = self._watch.series(since_s)
        if not series or series[-1].t_s - series[0].t_s < model.window_s(own.kind) - SINGLE_INTERVAL_S:
            return None
        self._read_s = now_s
        self.latest = model.classify(
            series, self._watch.base_s, list(self._goodput), own=own, responses=responses or ()
        )
        self._readings[self.latest.name] += 1
        switch = self._hysteresis.read(self.latest)
        if own.kind == DIPS_BBR and self._rests.read(now_s, self._hysteresis.unsure_readings, self._goodput):
            self._watch.rest(self._rests.until_s)
        return switch

    @property
    def lately(self) -> str | None:
        """The name of the latest reading, while it is not older than LATELY_S."""
        is_new = self.latest is not None and self._seen_s < self._read_s + LATELY_S
        return self.latest.name if is_new and self.latest is not None else None

    @property
    def summary(self) -> str:
        """The readings in words; empty where there were none."""
        said = ", ".join(f"{name} {count}" for name, count in self._readings.most_common())
        return f"background classified {counted(self._readings.total(), 'time')}: {said}" if said else ""

    def disturbed(self, now_s: float) -> None:
        """Note that what moved before says nothing of what moves now."""
        self._began_s = now_s
        self._rests.begin_anew()
        self._watch.rest(now_s)

    def switched(self, now_s: float, congestion: str) -> None:
        """Note what the streams use from now on."""
        self._congestion = congestion
        self.disturbed(now_s)
        self._hysteresis.made(congestion)

    def alone_with(self, now_s: float, congestion: str) -> None:
        """Note what the streams use from now on, also where no other traffic is recognised."""
        self._congestion = congestion
        self.disturbed(now_s)
        self._hysteresis.alone_with(congestion)

    def refused(self) -> None:
        """Note that the switch is not possible."""
        self._hysteresis.refused()

    def end(self) -> None:
        """Stop probing."""
        self._watch.end()

    def _count(self, now_s: float, arrived_bytes: int) -> None:
        if self._before is not None and now_s > self._before[0]:
            took_s = now_s - self._before[0]
            self._goodput.append((now_s, (arrived_bytes - self._before[1]) * 8 / took_s))
        self._before = now_s, arrived_bytes
        while self._goodput and self._goodput[0][0] < now_s - KEEP_S:
            self._goodput.popleft()
