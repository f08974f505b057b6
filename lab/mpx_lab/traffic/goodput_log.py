"""The goodput log of a receiver: NAME.csv for all streams together, NAME.streams.csv for each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from mpx_lab.traffic.log import Log


class GoodputLog:
    """Both files of a flow, a sample at a time.

    NAME.csv has every sample. A stream has a line only where bytes arrived, and one with 0 after them: a run
    may have thousands of streams that ended long ago.
    """

    def __init__(self, folder: Path, name: str, epoch_s: float) -> None:
        self._all = Log(folder / f"{name}.csv", ["t_s", "bytes"], epoch_s)
        self._each = Log(folder / f"{name}.streams.csv", ["t_s", "stream", "bytes"], epoch_s)
        self._totals: Mapping[int, int] = {}
        self._bringing: set[int] = set()  # the streams that had bytes in the previous sample

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()
        self._each.close()

    def look(self, at_s: float, totals: Mapping[int, int]) -> None:
        """Write what came since the previous sample; `totals` are the bytes of each stream so far."""
        brought = {
            stream: total - self._totals.get(stream, 0)
            for stream, total in totals.items()
            if total != self._totals.get(stream, 0)
        }
        self._all.line(at_s, sum(brought.values()))
        for stream in sorted(self._bringing | brought.keys()):
            self._each.line(at_s, stream, brought.get(stream, 0))
        self._totals, self._bringing = totals, set(brought)
