"""What was set for the TCP connections of each host, kept in the lab's folder for `status`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mpx_lab.plan import DEFAULT_CONGESTION
from mpx_lab.state import LabError


@dataclass(frozen=True, slots=True)
class Route:
    """What TCP connections of a host to another use, or to all (`to` None)."""

    host: str
    to: str | None = None
    congestion: str = DEFAULT_CONGESTION
    window_bytes: int | None = None  # None: tuned by the kernel

    @property
    def is_default(self) -> bool:
        """Whether it is the default of a lab."""
        return self == Route(self.host)


def routes_of(folder: Path, host: str) -> list[Route]:
    """Return what was set on a host, that for all destinations first; defaults are left out.

    Raises LabError where that cannot be read.
    """
    file = _file(folder, host)
    try:
        return [Route(**each) for each in json.loads(file.read_text())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, RecursionError) as error:
        raise LabError(f"{file} cannot be read ({error}); take the lab down and up again") from None


def with_route(before: Sequence[Route], fresh: Route) -> list[Route]:
    """Return the routes of a host after one more was set; one for all destinations replaces every other."""
    kept = [] if fresh.to is None else [route for route in before if route.to != fresh.to]
    return [*kept, *([] if fresh.is_default else [fresh])]


def save_routes(folder: Path, host: str, routes: Sequence[Route]) -> None:
    """Write the routes of all hosts, as a whole."""
    file = _file(folder, host)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps([asdict(route) for route in routes]) + "\n")
    fresh.replace(file)


def _file(folder: Path, host: str) -> Path:
    return folder / f"routes.{host}.json"
