"""The noise of hosts, for windows that a model learns from: simulated time has none of its own.

Three kinds, drawn for each window: a host with little to do; noise that was recorded on real hosts, as
`mpx probe --json` found it on paths without a queue; and a radio link, of which probes wait for their turn.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from mpx_lab.dataset.store import noise_files

from mpx.errors import UsageError
from mpx.recognition.observation import PASSIVE
from mpx.recognition.windows import Floats, bridged, on_grid
from mpx.rtt.series import Probe

RECORDED, RADIO = 0.3, 0.2  # shares of the windows; the others have that of a quiet host
QUIET_S = (1e-5, 1e-3)  # its mean, log-uniform
SCALED = (0.5, 2.0)  # what was recorded is of hosts slower or faster than others
WAITING_S = (2e-4, 3e-3)  # for a turn on a radio link, the mean, log-uniform
TOGETHER = (1, 10)  # steps in which turns come equally late, log-uniform
RARE, RARE_S = 0.04, (5e-3, 3e-2)  # probes at most that come far too late, and by how much in the mean


@dataclass(frozen=True)
class Noise:
    """What there is to draw from. The quiet host has the share of what there is not."""

    recorded: Sequence[Floats] = ()  # seconds above the least, a row of steps each
    has_radio: bool = False

    def of(self, kind: str) -> "Noise":
        """Return what is added to windows of a kind: radio links to those without data of our own only."""
        return self if kind == PASSIVE else replace(self, has_radio=False)

    def only(self, fold: int, folds: int) -> "Noise":
        """Return the recordings of one of so many folds."""
        return replace(self, recorded=self.recorded[fold::folds])

    def without(self, fold: int, folds: int) -> "Noise":
        """Return the recordings of all other folds."""
        others = [each for place, each in enumerate(self.recorded) if place % folds != fold]
        return replace(self, recorded=others)

    def drawn(self, dice: np.random.Generator, windows: int, steps: int) -> Floats:
        """Return seconds to add to each step of each window."""
        long = [each for each in self.recorded if len(each) >= steps]
        kinds = dice.random(windows)
        found = np.empty((windows, steps))
        for row, kind in enumerate(kinds):
            if kind < RECORDED and long:
                found[row] = some_of(long[int(dice.integers(len(long)))], steps, dice)
            elif kind >= 1 - RADIO and self.has_radio:
                found[row] = waiting_s(dice, steps)
            else:
                found[row] = quiet_s(dice, steps)
        return found


QUIET = Noise()


def quiet_s(dice: np.random.Generator, steps: int) -> Floats:
    """Return how late a host with little to do is, for each step."""
    return dice.exponential(_log_uniform(dice, QUIET_S), steps)


def waiting_s(dice: np.random.Generator, steps: int) -> Floats:
    """Return how long probes wait for their turn on a radio link, for each step."""
    together = round(_log_uniform(dice, TOGETHER))
    turns = dice.gamma(dice.uniform(0.7, 2.0), 1.0, steps + together - 1)
    waits = np.convolve(turns, np.ones(together) / together, "valid")
    late = dice.random(steps) < dice.uniform(0, RARE)
    return waits * _log_uniform(dice, WAITING_S) + late * dice.exponential(_log_uniform(dice, RARE_S), steps)


def recorded_noise(dataset: Path) -> Noise:
    """Return radio links, and what was recorded in a dataset.

    Raises UsageError for a file that is no result of `mpx probe`.
    """
    return Noise([_read(file) for file in noise_files(dataset)], has_radio=True)


def _read(file: Path) -> Floats:
    try:
        series = json.loads(file.read_text())["series"]
        probes = [Probe(float(each["t_s"]), each["rtt_s"]) for each in series]
        steps = bridged(on_grid(probes).rtt_s[None])[0]
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise UsageError(
            f"{file} is not what 'mpx probe --json' prints ({type(error).__name__}: {error}); remove it, or "
            "record the noise of a host again"
        ) from None
    return np.asarray(steps - steps.min())


def some_of(recorded: Floats, steps: int, dice: np.random.Generator) -> Floats:
    """Return so many steps of a recording, from anywhere, as of a host that is slower or faster."""
    at = int(dice.integers(0, len(recorded) - steps + 1))
    return recorded[at : at + steps] * _log_uniform(dice, SCALED)


def _log_uniform(dice: np.random.Generator, limits: tuple[float, float]) -> float:
    least, most = map(math.log, limits)
    return math.exp(dice.uniform(least, most))
