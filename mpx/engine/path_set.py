"""The path set of a copy as a controller hands it out, and how streams are dealt over its paths. Pure.

As in the thesis of Huang (SDN-enabled GridFTP) each path has a predicted number of streams, and streams go
over the paths in the ratio of these.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from mpx.choices import MOST_PATHS
from mpx.errors import ControllerError

Name = TypeVar("Name")
Side = Literal["source", "sink"]  # whose TCP port a stream is known by

DEFAULT_PATH = "default"  # the way that the network chooses where nobody else does
MOST_PREDICTED = 65_535
MOST_S = 86_400.0 * 365


@dataclass(frozen=True, slots=True)
class OfferedPath:
    """One path of a set: what is expected of it beside the others."""

    name: str  # its place in the set, as text
    streams: int  # predicted: max(1, a B R), Huang (4.8)
    rate_bps: float | None  # what it carries beside the others of the set
    rtt_s: float
    group: int  # paths of one group share a bottleneck
    is_up: bool  # whether the network still has it


@dataclass(frozen=True, slots=True)
class PathSet:
    """What a controller has handed out; `lease_s`: for how long, without a sign of use.

    `most_streams`: that may be on it at once; None where the controller does not say.
    """

    number: int
    lease_s: float
    paths: tuple[OfferedPath, ...]
    most_streams: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its paths."""
        return tuple(path.name for path in self.paths)

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Return the names of paths that share a bottleneck, together."""
        found: dict[int, list[str]] = {}
        for path in self.paths:
            found.setdefault(path.group, []).append(path.name)
        return [tuple(names) for names in found.values()]

    def only(self, count: int) -> "PathSet":
        """Return it with its first paths alone."""
        return replace(self, paths=self.paths[:count])


def read_path_set(answer: Any) -> PathSet:
    """Return the path set that a controller describes; raises ControllerError if it is invalid."""
    try:
        paths = tuple(_read_path(place, each) for place, each in enumerate(answer["paths"]))
        number, lease_s = answer["id"], _number(answer["lease_s"], 0, MOST_S)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 1 << 63:
            raise ValueError(f"{number!r} is not the number of a path set")
        if not 0 < len(paths) <= MOST_PATHS:
            raise ValueError(f"{len(paths)} paths")
        most = answer.get("most_streams")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise ValueError(f"{most!r} streams at most")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ControllerError(f"the controller returned an invalid path set: {error!r}") from None
    return PathSet(number, lease_s, paths, most)


def _read_path(place: int, answer: Any) -> OfferedPath:
    rate = answer["rate_bps"]
    streams, group = answer["streams"], answer["group"]
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (streams, group)):
        raise ValueError("streams and groups are whole numbers")
    if not 0 < streams <= MOST_PREDICTED:
        raise ValueError(f"{streams} streams")
    return OfferedPath(
        str(place),
        streams,
        None if rate is None else _number(rate, 0, 1e18),
        _number(answer["rtt_s"], 0, MOST_S),
        group,
        bool(answer.get("up", True)),
    )


def _number(value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError(f"{value!r} is not between {least:g} and {most:g}")
    return float(value)


def split(total: int, weights: Sequence[int]) -> list[int]:
    """Divide streams over paths in the ratio of `weights`, by largest remainders; the first of equals first.

    Each path has one before any has two by its remainder, as far as `total` goes: a path of a set without
    a stream is of no use.
    """
    if total <= len(weights):
        return [int(place < total) for place in range(len(weights))]
    shared, weight = total - len(weights), sum(weights)
    # What is left when each has one is dealt so that the sums come nearest to the ratio.
    ideal = [max(0.0, total * each / weight - 1) for each in weights]
    scale = shared / sum(ideal) if sum(ideal) else 0.0
    exact = [each * scale for each in ideal]
    counts = [int(each) for each in exact]
    by_remainder = sorted(range(len(weights)), key=lambda place: (counts[place] - exact[place], place))
    for place in by_remainder[: shared - sum(counts)]:
        counts[place] += 1
    return [count + 1 for count in counts]


def interleaved(counts: Mapping[Name, int]) -> tuple[Name, ...]:
    """Return each name so often, evenly mixed: wherever the list is cut, each has its share to within one.

    That is proportionate-fair scheduling (Baruah et al., Algorithmica 15, 1996). Of a name that is there c
    times among n, the j-th may have the places floor((j - 1) n / c) + 1 to ceil(j n / c). Of those that may
    come next the one whose places end first comes first, in a tie the one whose even place is the earlier.
    """
    total = sum(counts.values())
    dealt: Counter[Name] = Counter()
    order: list[Name] = []
    for place in range(1, total + 1):
        name = min(
            (name for name, count in counts.items() if dealt[name] * total < place * count),
            key=lambda name: (
                -(-(dealt[name] + 1) * total // counts[name]),
                (dealt[name] + 0.5) / counts[name],
            ),
        )
        dealt[name] += 1
        order.append(name)
    return tuple(order)
