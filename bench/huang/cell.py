"""One cell: a topology, numbers of paths and streams, and how streams are assigned to paths."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class CopyCell:
    """One of several repetitions of a copy by globus-url-copy to a stock server.

    `paths` 0: the tool alone, where there is no controller. `selection`: how paths are chosen. `a`: streams
    for each Mbit/s and ms, as the thesis prints it, set in the controller beforehand; 0: not set.
    """

    topology: str
    paths: int
    streams: int
    size_bytes: int
    in_turn: bool = False  # one stream after the other on each path (round robin), not as predicted
    selection: str = "widest-apart"
    a: float = 0.0
    window_bytes: int | None = None  # of each stream; None: tuned by the kernel
    scale: float = 1.0  # of all rates
    repetition: int = 1

    @property
    def way(self) -> str:
        """How streams are assigned to paths, in a word."""
        if self.paths == 0:
            return "alone"
        return "single" if self.paths == 1 else "in turn" if self.in_turn else "by prediction"

    @property
    def name(self) -> str:
        """What it is stored under."""
        scale = f"-x{self.scale:g}" if self.scale != 1 else ""
        window = "auto" if self.window_bytes is None else f"w{self.window_bytes}"
        how = f"{self.paths}-{self.way.replace(' ', '-')}-{self.selection}-a{self.a:g}-{window}"
        return f"{self.topology}{scale}-{how}-{self.streams}-{self.size_bytes / 1e6:g}M-{self.repetition}"

    @property
    def group(self) -> tuple[Any, ...]:
        """Cells of one group share a lab and its controller."""
        return self.topology, self.scale, self.selection, self.a, self.window_bytes, self.paths == 0

    def described(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)
