"""A link that the kernel carries: a pair of devices with its own queueing disciplines, netem, tbf and police.

For machines whose time is simulated (simulated.py), where a kernel timer is never late and a process that
carries frames is what takes the time. A frame is delayed or lost first and queued then, as where the
bottleneck is the far end's; netem takes it from its socket, so that a sender notices nothing of the queue but
by its answers. What is on the serialiser does not count as queued: a queue holds a frame more than an
emulator's. Elsewhere TCP passes several frames on as one, which netem would lose or delay as a whole. A
policer is at the far device: netem hands all frames that are due on at once, so of a burst in no time a
queue of one frame would keep one, however many tokens there are.
"""

import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx_lab.emulator.accounting import DirectionStats, Histogram, LinkStats, Tally
from mpx_lab.emulator.link import LinkError
from mpx_lab.emulator.netem import set_netem
from mpx_lab.namespace import inside
from mpx_lab.programs import find, run
from mpx_lab.shape import FULL_FRAME_BYTES, Direction, Shape

LINK_QUEUES = ("netem", "tbf", "pfifo", "fq_codel", "clsact")  # and in front of no other device of a lab
_BURST_BYTES = 1600  # a frame, and what `tc` loses in rounding; ...
_BURST_S = 10e-6  # ... above 1 Gbit/s some, as timers are no finer
_UNLIMITED_BYTES = 1 << 31


@dataclass(frozen=True)
class _Side:
    """The device that frames of one direction leave from, and their shape."""

    netns: str
    device: str
    is_port: bool  # of a switch
    shape: Shape


class KernelLink:
    """A link of a running lab; its description is `name.json` in the lab's folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = folder / f"{name}.json"

    def start(self, a: tuple[str, str, bool, Shape], b: tuple[str, str, bool, Shape]) -> None:
        """Turn a plain cable into such a link.

        An end is namespace, device, whether it is a port of a switch, and the shape of what leaves it. Raises
        LabError.
        """
        sides = [_Side(*end) for end in (a, b)]
        for side in sides:
            run([find("ip"), "-n", side.netns, "link", "set", side.device, "gso_max_segs", "1"])
            _set_netem(side, new=True, seeded=True)
        for side, far in zip(sides, reversed(sides), strict=True):
            _set_rate("add", side, far)
        self._save(sides, up=True)

    def change_each(self, changes: Mapping[Direction, Mapping[str, Any]]) -> None:
        """Change what Shape names, in all directions named; a seed begins its losses anew.

        Raises UsageError for an impossible shape, and where a limit would come or go, or be of another kind.
        """
        before, up = self._stored()
        sides = list(before)
        for number, direction in enumerate(Direction):
            wanted = dict(changes.get(direction, {}))
            if any(name.startswith("queue") for name in wanted):  # either kind replaces the other
                wanted = {"queue_bytes": None, "queue_packets": None, **wanted}
            try:
                shape = replace(sides[number].shape, **wanted)
            except TypeError as exc:
                raise UsageError(f"no such property of a link: {exc}") from exc
            if _kinds(shape) != _kinds(sides[number].shape):
                raise UsageError(
                    f"link {self.name}: in simulated time a rate limit can be changed but not added or "
                    "removed, and a queue stays of its kind; set it in the topology"
                )
            sides[number] = replace(sides[number], shape=shape)
        for direction, old, new, far in zip(Direction, before, sides, reversed(sides), strict=True):
            seeded = "seed" in changes.get(direction, {})
            if new != old or seeded:
                _set_netem(new if up else _cut(new), new=False, seeded=seeded)
                _set_rate("replace", new, far)
        self._save(sides, up=up)

    def set_up(self, up: bool) -> None:
        """Connect the link, or cut it: both ends lose their carrier, and all is lost that is on its way.

        Between two hosts their devices stay up, as hosts would forget their routes: what they send is lost,
        and what has been on its way arrives. Raises LabError.
        """
        sides, _ = self._stored()
        ports = [side for side in sides if side.is_port]
        for side in ports:
            run([find("ip"), "-n", side.netns, "link", "set", side.device, "up" if up else "down"])
        for side in sides if not ports else ():
            _set_netem(side if up else _cut(side), new=False, seeded=False)
        self._save(sides, up=up)

    def stats(self) -> LinkStats:
        """Return everything it has counted since its start; raises LinkError where it is gone."""
        sides, up = self._stored()
        there, back = (_counted(side, far) for side, far in zip(sides, reversed(sides), strict=True))
        return LinkStats(self.name, time.monotonic(), up, False, 0.0, there, back)

    def _stored(self) -> tuple[list[_Side], bool]:
        """Return both sides, and whether the link is up."""
        try:
            stored = json.loads(self._file.read_text())
        except OSError as exc:
            raise LinkError(f"link {self.name} is gone: {exc}") from exc
        return [_Side(**{**each, "shape": Shape(**each["shape"])}) for each in stored["sides"]], stored["up"]

    def _save(self, sides: list[_Side], *, up: bool) -> None:
        self._file.write_text(json.dumps({"up": up, "sides": [asdict(side) for side in sides]}))


def _kinds(shape: Shape) -> tuple[bool, bool, bool, bool]:
    """Return what cannot change while a link runs."""
    return shape.rate_bps is None, shape.queue_packets is None, shape.fair_queue, shape.policer


def _cut(side: _Side) -> _Side:
    return replace(side, shape=replace(side.shape, loss=1.0))


def _set_netem(side: _Side, *, new: bool, seeded: bool) -> None:
    inside(side.netns, partial(set_netem, side.device, side.shape, new=new, seeded=seeded))


def _set_rate(verb: str, side: _Side, far: _Side) -> None:
    """Add or replace what limits the rate, and its queue; `far`: where frames of this side arrive."""
    shape, where = side.shape, ["dev", side.device]
    if shape.rate_bps is None:
        return
    burst_bytes = max(_BURST_BYTES, round(shape.rate_bps * _BURST_S / 8), shape.burst_bytes or 0)
    if shape.policer:
        limits = ["police", "rate", f"{shape.rate_bps}bit", "burst", str(burst_bytes), "conform-exceed"]
        # In its namespace an action has a number: only so can it be changed, and keep its counters.
        police = ["action", *limits, "drop/ok", "index", str(zlib.crc32(far.device.encode()) >> 1 or 1)]
        if verb == "add":
            _tc(far.netns, "qdisc", "add", "dev", far.device, "clsact")
            _tc(far.netns, "filter", "add", "dev", far.device, "ingress", "matchall", *police)
        else:
            _tc(far.netns, "actions", "replace", *police)
        return
    queue_bytes = shape.queue_bytes or _UNLIMITED_BYTES
    if shape.queue_packets is not None:
        queue_bytes = shape.queue_packets * FULL_FRAME_BYTES
    words = ["parent", "1:1", "handle", "2:", "tbf", "rate", f"{shape.rate_bps}bit"]
    _tc(side.netns, "qdisc", verb, *where, *words, "burst", str(burst_bytes), "limit", str(queue_bytes))
    words = []
    if shape.fair_queue:
        packets = shape.queue_packets or max(1, queue_bytes // FULL_FRAME_BYTES)
        words = ["fq_codel", "limit", str(packets), "noecn"]
    elif shape.queue_packets is not None:
        words = ["pfifo", "limit", str(shape.queue_packets)]
    if words:
        _tc(side.netns, "qdisc", verb, *where, "parent", "2:1", "handle", "3:", *words)


def _counted(side: _Side, far: _Side) -> DirectionStats:
    listed = json.loads(_tc(side.netns, "-s", "-j", "qdisc", "show", "dev", side.device))
    by_kind = {each["kind"]: each for each in listed}
    netem = by_kind["netem"]
    last = by_kind.get("tbf", netem)
    delivered, held = Tally(last["packets"], last["bytes"]), Tally(netem["qlen"], netem["backlog"])
    queued = Tally(last["qlen"], last["backlog"])
    full = Tally(last["drops"], last["drops"] * FULL_FRAME_BYTES) if last is not netem else Tally()
    lost = max(0, netem["drops"] - full.frames)  # netem also counts what the queue behind it drops
    if side.shape.policer:
        full = _policed(far)
        delivered = Tally(delivered.frames - full.frames, delivered.bytes - full.bytes)
    gone, nothing = Tally(lost, lost * FULL_FRAME_BYTES), Tally()
    return DirectionStats(
        shape=side.shape,
        received=delivered + held + full + gone,
        delivered=delivered,
        dropped_queue=full,
        dropped_loss=gone,
        dropped_down=nothing,
        dropped_ring=nothing,
        dropped_invalid=nothing,
        write_errors=nothing,
        held=held,
        queued=queued,
        device_dropped=0,
        late=Histogram((), 0),
        pickup=Histogram((), 0),
        hindrances=(),
    )


def _policed(far: _Side) -> Tally:
    """Return what a policer has dropped."""
    listed = json.loads(_tc(far.netns, "-s", "-j", "filter", "show", "dev", far.device, "ingress"))
    drops = sum(
        action["stats"]["drops"]
        for each in listed
        for action in each.get("options", {}).get("actions", ())
        if "stats" in action
    )
    return Tally(drops, drops * FULL_FRAME_BYTES)


def _tc(netns: str, *words: str) -> str:
    return run([find("tc"), "-n", netns, *words])
