"""What a copy does about other traffic, path by path: switch the congestion control, or yield.

Most copies are over before any of this is needed, so recognition is imported when it is.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpx.choices import CUBIC, FAIR
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.tuner import Sample
from mpx.errors import UsageError
from mpx.recognition.policy import Switch
from mpx.recognition.random_losses import RandomLosses
from mpx.report import OnNote, Severity
from mpx.transfer.ends import Ends
from mpx.transfer.transport import Transport
from mpx.transfer.watched_path import SharedModel, WatchedPath

if TYPE_CHECKING:
    from mpx.multipath.paths_in_use import Multipath
    from mpx.recognition.monitor import BackgroundMonitor
    from mpx.recognition.scavenger import Scavenger

ENDING_S = 1.0  # less than this is left: nothing decided now would show
LAST_PARTS_S = 0.2  # the same where losses slow the last streams: they take longer than that
LONG_S = 1.0  # a copy that has moved bytes for so long may be worth reading the background
WORTH_A_SWITCH_S = 8.0  # less than this is left: a reading that begins now would end too late


@dataclass(frozen=True, slots=True)
class Reaction:
    """Something that was done because of the background, in words for the report."""

    reason: str
    is_switch: bool = False  # what the tuners have learnt may be void


class Background:
    """Reads the background of one path and acts on it. Used by the control loop's thread."""

    def __init__(
        self,
        carrier: Carrier,
        path: str,
        congestion: str | None,
        refused: threading.Event,
        note: OnNote,
        *,
        begin_monitor: "Callable[[float], BackgroundMonitor | None] | None" = None,
        scavenger: "Scavenger | None" = None,
        losses: RandomLosses | None = None,
    ) -> None:
        """`congestion`: what streams begin with; `refused` is set when a server does not switch.

        `begin_monitor` makes the monitor of bytes that move since then (monotonic clock), None if it cannot.
        `losses`: where the number of streams cannot grow.
        """
        self.congestion = congestion
        self._carrier, self._path, self._refused, self._note = carrier, path, refused, note
        self._before: str | None = None  # what streams go on with where the last switch is refused
        self._begin_monitor = begin_monitor
        self._monitor: BackgroundMonitor | None = None
        self._scavenger = scavenger
        self._losses = losses
        self._moving_s: float | None = None  # since when bytes arrive
        self._is_read = False  # now: towards the end of a copy there is no use in it

    @property
    def reading(self) -> str | None:
        """The name of the mix that was read lately; None where there is no reading."""
        return self._monitor.lately if self._monitor is not None and self._is_read else None

    def observe(self, now_s: float, sample: Sample, lasts_s: float, wanted: int) -> Iterator[Reaction]:
        """Take what has moved up to now (monotonic clock); act, and yield what was done.

        `lasts_s`: for how long there is work at the present rate. `wanted`: how many streams there would be
        if all came that were asked for.
        """
        if self._moving_s is None and sample.arrived_bytes:
            self._moving_s = now_s
        if self._scavenger is not None and lasts_s >= ENDING_S:
            yield from self._yield(self._scavenger, now_s, sample)
        if self._losses is not None and lasts_s >= LAST_PARTS_S:
            yield from self._by_losses(self._losses, now_s, sample, wanted)
        self._is_read = lasts_s >= WORTH_A_SWITCH_S
        if self._is_read:
            if self._begin_monitor and self._moving_s is not None and now_s >= self._moving_s + LONG_S:
                self._monitor, self._begin_monitor = self._begin_monitor(self._moving_s), None
            if self._monitor is not None:
                yield from self._select(self._monitor, now_s, sample)

    def _yield(self, scavenger: "Scavenger", now_s: float, sample: Sample) -> Iterator[Reaction]:
        """Be as fast as leaves no queue; where queues cannot be measured, note that and go on."""
        news = scavenger.observe(now_s, sample.arrived_bytes)
        if scavenger.trouble:
            self._note(f"scavenger mode is inactive: {scavenger.trouble}")
        if news:
            yield Reaction(news)

    def _by_losses(
        self, losses: RandomLosses, now_s: float, sample: Sample, wanted: int
    ) -> Iterator[Reaction]:
        """Switch the streams where losses are random, or a queue shows that they are not alone."""
        if switch := losses.observe(now_s, sample, wanted):
            yield from self._switch(switch, losses, now_s, " although losses are random")

    def _select(self, monitor: "BackgroundMonitor", now_s: float, sample: Sample) -> Iterator[Reaction]:
        """Switch the streams where the background has come to ask for it; note what cannot be had."""
        switch = monitor.observe(now_s, sample)
        if monitor.trouble:
            self._note(f"the background is not recognised: {monitor.trouble}", _severity(monitor))
        if switch is not None:
            yield from self._switch(switch, monitor, now_s)

    def _switch(
        self, switch: Switch, asking: "RandomLosses | BackgroundMonitor", now_s: float, although: str = ""
    ) -> Iterator[Reaction]:
        """Switch the streams as one asks; both who can ask are told what is used from now on."""
        try:
            self._carrier.set_congestion(self._path, switch.congestion)
        except (UsageError, OSError) as error:  # OSError: no descriptor is left to ask what may be used
            self._note(f"the streams stay with {self.congestion}{although}: {error}")
            asking.refused()
            return
        self.congestion, self._before = switch.congestion, self.congestion
        if self._losses is not None:
            self._losses.switched(now_s, switch.congestion)
        if self._monitor is not None:
            is_its_own = asking is self._monitor
            told = self._monitor.switched if is_its_own else self._monitor.alone_with
            told(now_s, switch.congestion)
        yield Reaction(f"switched to {switch.congestion}: {switch.reason}", is_switch=True)

    def take_refusal(self, now_s: float) -> str:
        """Return, once, what a server that refused the last switch still sends with; else an empty text.

        All its sessions are set back to that congestion control.
        """
        if not self._refused.is_set():
            return ""
        self._refused.clear()
        before = self._before
        if self.congestion == before:  # as another session of it has said already
            return ""
        self.congestion = before
        if before and self._monitor is not None:
            self._carrier.set_congestion(self._path, before)
            self._monitor.switched(now_s, before)
        return f"the server refused the switch and still uses {before or 'the default of its kernel'}"

    def disturbed(self, now_s: float) -> None:
        """Note that what moved before says nothing of what moves now (monotonic clock)."""
        if self._monitor is not None:
            self._monitor.disturbed(now_s)

    def end(self) -> None:
        """Stop probing, and note what was read."""
        if self._monitor is not None and self._monitor.summary:
            self._note(self._monitor.summary)
        for each in (self._monitor, self._scavenger):
            if each is not None:
                each.end()


def _severity(monitor: "BackgroundMonitor") -> Severity:
    """Return how severe its trouble is: a model that was asked for by hand and cannot be loaded is shown."""
    from mpx.ops_classifier import named_model

    return Severity.NOTICE if monitor.has_no_model and named_model() else Severity.INFO


def backgrounds_of(
    carrier: Carrier,
    context: CarrierContext,
    ends: Ends,
    transport: Transport,
    note: OnNote,
    multipath: "Multipath | None" = None,
) -> Mapping[str, Background]:
    """Return the background of each path of a copy: it is read where the plan has it select or yield."""
    model = SharedModel()
    return {
        path: _background_of(WatchedPath(path, ends, transport, multipath), carrier, context, model, note)
        for path in context.controls
    }


def _background_of(
    place: WatchedPath, carrier: Carrier, context: CarrierContext, model: SharedModel, note: OnNote
) -> Background:
    plan, control = place.transport.plan, context.controls[place.path]
    selects = place.transport.mode_e and plan.selects
    connections = functools.partial(carrier.connections, place.path)
    watch = place.watch(connections if selects else None) if plan.yields else None
    scavenger = None
    if watch is not None:
        from mpx.recognition.scavenger import Scavenger

        scavenger = Scavenger(watch, control.limiter, context.events.may_spread.is_set)
    begin = functools.partial(place.monitor, model, connections, watch) if selects else None
    options = place.transport.options
    losses = None
    if (selects or plan.by_losses) and options.policy == FAIR:
        first = place.transport.congestion_of(place.path) or CUBIC
        losses = RandomLosses(first, options.share, options.max_streams)

    return Background(
        carrier,
        place.path,
        place.transport.congestion_of(place.path),
        control.congestion_refused,
        place.noted(note),
        begin_monitor=begin,
        scavenger=scavenger,
        losses=losses,
    )
