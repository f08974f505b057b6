"""A link that the kernel carries: a pair of devices with its own queueing disciplines, netem and tbf.

For machines whose time is simulated (simulated.py), where a kernel timer is never late and a process that
carries frames is what takes the time. A frame is delayed first and queued then, as where the bottleneck is
the far end's; netem takes it from its socket, so that a sender notices nothing of the queue but by its
answers. What is on the serialiser does not count as queued: a queue holds a frame more than an emulator's.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx_lab.devices import without_offloads
from mpx_lab.emulator.accounting import DirectionStats, Histogram, LinkStats, Tally
from mpx_lab.emulator.link import End, LinkError
from mpx_lab.namespace import inside
from mpx_lab.programs import find, run
from mpx_lab.shape import FULL_FRAME_BYTES, Direction, Shape

LINK_QUEUES = ("netem", "tbf", "pfifo")  # and in front of no other device of a lab
_FRAMES = 10_000_000  # that are on their way at most: none is ever lost there
_BURST_BYTES = 1600  # a frame, with what `tc` loses in rounding
_UNLIMITED_BYTES = 1 << 31


@dataclass(frozen=True)
class _Side:
    """The device that frames of one direction leave from, and what happens to them."""

    netns: str
    device: str
    shape: Shape


class KernelLink:
    """A link of a running lab; its description is `name.json` in the lab's folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = folder / f"{name}.json"

    def start(self, a: End, b: End, a_to_b: Shape, b_to_a: Shape, environment: Mapping[str, str]) -> None:
        """Make both devices; raises LabError."""
        names = [Path(end.netns).name for end in (a, b)]
        macs = [f" address {end.mac}" if end.mac else "" for end in (a, b)]
        line = (
            f"link add {a.device}{macs[0]} mtu 1500 type veth "
            f"peer name {b.device}{macs[1]} mtu 1500 netns {names[1]}"
        )
        run([find("ip"), "-n", names[0], "-batch", "-"], dict(environment), line + "\n")
        for netns, end, shape in zip(names, (a, b), (a_to_b, b_to_a), strict=True):
            inside(netns, partial(without_offloads, end.device))
            run([find("ip"), "-n", netns, "link", "set", end.device, "up"], dict(environment))
            _apply("add", _Side(netns, end.device, shape))
        self._save([_Side(*it) for it in zip(names, (a.device, b.device), (a_to_b, b_to_a), strict=True)])

    def change_each(self, changes: Mapping[Direction, Mapping[str, Any]]) -> None:
        """Change what Shape names, in all directions named.

        Raises UsageError for an impossible shape, and where a limit would come or go, or be of another kind.
        """
        before = self._sides()
        sides = list(before)
        for number, direction in enumerate(Direction):
            wanted = dict(changes.get(direction, {}))
            if any(name.startswith("queue") for name in wanted):  # either kind takes the other's place
                wanted = {"queue_bytes": None, "queue_packets": None, **wanted}
            try:
                shape = replace(sides[number].shape, **wanted)
            except TypeError as exc:
                raise UsageError(f"a link has no such property: {exc}") from exc
            if _kinds(shape) != _kinds(sides[number].shape):
                raise UsageError(
                    f"link {self.name}: where time is simulated no limit of a rate comes or goes, and a "
                    "queue in bytes stays one in bytes; give it so in the topology"
                )
            sides[number] = replace(sides[number], shape=shape)
        for old, new in zip(before, sides, strict=True):
            if new != old:
                _apply("replace", new)
        self._save(sides)

    def set_up(self, up: bool) -> None:
        """Raise UsageError unless it is to work, as it always does."""
        if not up:
            raise UsageError(
                f"link {self.name} cannot be cut where time is simulated; use a lab of the machine itself"
            )

    def stats(self) -> LinkStats:
        """Return everything it has counted since its start; raises LinkError where it is gone."""
        there, back = (_counted(side) for side in self._sides())
        return LinkStats(self.name, time.monotonic(), True, False, 0.0, there, back)

    def _sides(self) -> list[_Side]:
        try:
            told = json.loads(self._file.read_text())
        except OSError as exc:
            raise LinkError(f"link {self.name} is gone: {exc}") from exc
        return [_Side(each["netns"], each["device"], Shape(**each["shape"])) for each in told]

    def _save(self, sides: list[_Side]) -> None:
        self._file.write_text(json.dumps([asdict(side) for side in sides]))


def _kinds(shape: Shape) -> tuple[bool, bool]:
    """Return which disciplines a shape takes."""
    return shape.rate_bps is None, shape.queue_packets is None


def _apply(verb: str, side: _Side) -> None:
    shape, where = side.shape, ["dev", side.device]
    words = ["root", "handle", "1:", "netem", "limit", str(_FRAMES), "delay", f"{shape.delay_s * 1e6:.3f}us"]
    if shape.loss:
        words += ["loss", f"{shape.loss:.7%}"]
    _tc(side.netns, "qdisc", verb, *where, *words)
    if shape.rate_bps is None:
        return
    queue_bytes = shape.queue_bytes or _UNLIMITED_BYTES
    if shape.queue_packets is not None:
        queue_bytes = shape.queue_packets * FULL_FRAME_BYTES
    words = ["parent", "1:1", "handle", "2:", "tbf", "rate", f"{shape.rate_bps}bit"]
    _tc(side.netns, "qdisc", verb, *where, *words, "burst", str(_BURST_BYTES), "limit", str(queue_bytes))
    if shape.queue_packets is not None:
        words = ["parent", "2:1", "handle", "3:", "pfifo", "limit", str(shape.queue_packets)]
        _tc(side.netns, "qdisc", verb, *where, *words)


def _counted(side: _Side) -> DirectionStats:
    told = json.loads(_tc(side.netns, "-s", "-j", "qdisc", "show", "dev", side.device))
    by_kind = {each["kind"]: each for each in told}
    netem = by_kind["netem"]
    last = by_kind.get("tbf", netem)
    delivered, held = Tally(last["packets"], last["bytes"]), Tally(netem["qlen"], netem["backlog"])
    queued = Tally(last["qlen"], last["backlog"])
    full = Tally(last["drops"], last["drops"] * FULL_FRAME_BYTES) if last is not netem else Tally()
    lost = netem["drops"] - full.frames
    gone = Tally(max(0, lost), max(0, lost) * FULL_FRAME_BYTES)
    nothing = Tally()
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


def _tc(netns: str, *words: str) -> str:
    return run([find("tc"), "-n", netns, *words])
