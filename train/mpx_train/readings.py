"""Readings once a second, as a probe or a copy makes them, of series of links that were not learnt from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from mpx_lab.dataset.load import Example

from mpx.recognition.features import features
from mpx.recognition.mix import UNKNOWN, Mix, likeliest
from mpx_train.crossfit import Heard, heard
from mpx_train.cut import Gridded, each_second, gridded, joined
from mpx_train.forest import shares_of
from mpx_train.learn import DEFAULT, Judged, Kind, Settings, grown
from mpx_train.splits import by_link
from mpx_train.train import runs_for


@dataclass(frozen=True)
class ReadSeries:
    """A series of the dataset, and what was read from it, a second after each other."""

    link: str
    mix: str  # what is true
    is_clean: bool
    readings: Sequence[Mix]


def read_unseen(
    examples: Sequence[Example], kind: Kind, seed: int, by: Settings = DEFAULT
) -> Iterator[ReadSeries]:
    """Yield the series of a kind, each read by what was learnt and calibrated on other links.

    The first reading is of the first whole window. Raises UsageError where there is too little to learn from.
    """
    known, outside, alike = (
        gridded(runs, kind.name, least_s=kind.window_s) for runs in runs_for(kind.name, examples)
    )
    everything = [*known, *outside, *alike]
    found: list[Judged] = []
    series: list[tuple[Gridded, int]] = []  # and how many readings it has
    for fold, split in enumerate(by_link([grid.example for grid in everything], by.folds, seed)):
        learn = {i for i in split.learn if i < len(known) + len(outside)}
        made = grown(
            [grid for i, grid in enumerate(known) if i in learn],
            [grid for i, grid in enumerate(outside, len(known)) if i in learn],
            kind,
            seed,
            by,
        )
        for grid in (everything[i] for i in split.judge):
            windows = each_second(grid, kind.window_s)
            rows = features(windows.windows, kind.name)
            size = len(windows)
            shares, distances = shares_of(made.trees, rows), made.places.distances(rows)
            found.append(Judged(windows, np.full(size, False), np.full(size, fold), shares, distances))
            series.append((grid, size))
    said = heard(
        Judged(
            joined([each.windows for each in found]),
            *(
                np.concatenate([getattr(each, name) for each in found])
                for name in ("base_known", "fold", "shares", "distances")
            ),
        )
    )
    first = 0
    for grid, size in series:
        readings = [_reading(said, row) for row in range(first, first + size)]
        first += size
        yield ReadSeries(grid.example.link, grid.example.mix, not grid.example.nuisance, readings)


def _reading(said: Heard, row: int) -> Mix:
    shares = said.probabilities[row].tolist()
    return Mix(UNKNOWN, 1.0, shares) if said.is_novel[row] else likeliest(shares)
