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
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx_lab.emulator.accounting import DirectionStats, Histogram, LinkStats, Tally
from mpx_lab.emulator.link import LinkError
from mpx_lab.programs import find, run
from mpx_lab.shape import FULL_FRAME_BYTES, Direction, Shape

LINK_QUEUES = ("netem", "tbf", "pfifo")  # and in front of no other device of a lab
_FRAMES = 10_000_000  # in flight at most: large enough that none is lost there
_BURST_BYTES = 1600  # a frame, and what `tc` loses in rounding
_UNLIMITED_BYTES = 1 << 31


@dataclass(frozen=True)
class _Side:
    """The device that frames of one direction leave from, and their shape."""

    netns: str
    device: str
    shape: Shape


class KernelLink:
    """A link of a running lab; its description is `name.json` in the lab's folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = folder / f"{name}.json"

    def start(self, a: tuple[str, str, Shape], b: tuple[str, str, Shape]) -> None:
        """Turn a plain cable into such a link; an end is namespace, device, and the shape of what leaves it.

        TCP passes several frames on as one, which netem would drop as a whole; so where frames are lost
        at random segmentation is done before. Raises LabError.
        """
        sides = [_Side(*end) for end in (a, b)]
        for side in sides:
            if side.shape.loss:
                run([find("ip"), "-n", side.netns, "link", "set", side.device, "gso_max_segs", "1"])
            _apply("add", side)
        self._save(sides)

    def change_each(self, changes: Mapping[Direction, Mapping[str, Any]]) -> None:
        """Change what Shape names, in all directions named.

        Raises UsageError for an impossible shape, and where a limit would come or go, or be of another kind.
        """
        before = self._sides()
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
                    f"link {self.name}: in simulated time a rate limit or a loss can be changed but not "
                    "added or removed, and a queue keeps its unit; set it in the topology"
                )
            sides[number] = replace(sides[number], shape=shape)
        for old, new in zip(before, sides, strict=True):
            if new != old:
                _apply("replace", new)
        self._save(sides)

    def set_up(self, up: bool) -> None:
        """Raise UsageError where it is to be cut: such a link is always up."""
        if not up:
            raise UsageError(
                f"link {self.name} cannot be cut in simulated time; run without mpx lab simulate"
            )

    def stats(self) -> LinkStats:
        """Return everything it has counted since its start; raises LinkError where it is gone."""
        there, back = (_counted(side) for side in self._sides())
        return LinkStats(self.name, time.monotonic(), True, False, 0.0, there, back)

    def _sides(self) -> list[_Side]:
        try:
            stored = json.loads(self._file.read_text())
        except OSError as exc:
            raise LinkError(f"link {self.name} is gone: {exc}") from exc
        return [_Side(each["netns"], each["device"], Shape(**each["shape"])) for each in stored]

    def _save(self, sides: list[_Side]) -> None:
        self._file.write_text(json.dumps([asdict(side) for side in sides]))


def _kinds(shape: Shape) -> tuple[bool, bool, bool]:
    """Return what cannot change while a link runs."""
    return shape.rate_bps is None, shape.queue_packets is None, shape.loss > 0


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
    listed = json.loads(_tc(side.netns, "-s", "-j", "qdisc", "show", "dev", side.device))
    by_kind = {each["kind"]: each for each in listed}
    netem = by_kind["netem"]
    last = by_kind.get("tbf", netem)
    delivered, held = Tally(last["packets"], last["bytes"]), Tally(netem["qlen"], netem["backlog"])
    queued = Tally(last["qlen"], last["backlog"])
    full = Tally(last["drops"], last["drops"] * FULL_FRAME_BYTES) if last is not netem else Tally()
    # netem also counts what the queue behind it drops.
    lost = netem["drops"] - full.frames if side.shape.loss else 0
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


def _tc(netns: str, *words: str) -> str:
    return run([find("tc"), "-n", netns, *words])
