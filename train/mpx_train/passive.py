"""What training models of paths without data of our own has in common: windows, folds, figures, card."""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from mpx_lab.dataset.load import Example, load_dataset
from numpy.typing import NDArray

from mpx._version import __version__
from mpx.errors import UsageError
from mpx.recognition.mix import GROUP_OF, MIXES
from mpx.recognition.neighbours import Texts
from mpx.recognition.observation import PASSIVE
from mpx.recognition.windows import Booleans
from mpx_train.card import data_of
from mpx_train.cut import Gridded, Labelled, even, gridded
from mpx_train.model_writer import check_model_writable
from mpx_train.noise import recorded_noise
from mpx_train.train import FEWEST_LINKS, runs_for, too_few_links

WINDOW_S = 10.0
FOLDS = 10
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class PassiveData:
    """The passive series of a dataset, and all windows of them."""

    dataset: Path
    examples: Sequence[Example]
    grids: Sequence[Gridded]
    windows: Labelled  # one after the other; the base is the least ever seen
    noisy: Labelled  # the same with the noise of hosts, and their own least
    others: Labelled | None  # the same beside traffic that is none of the mixes; None: not measured


def passive_data(dataset: Path, model: Path, seed: int) -> PassiveData:
    """Read a dataset; raises UsageError where it has too few links, or no model can be written there."""
    check_model_writable(model)
    examples = load_dataset(dataset)
    known, outside, _ = runs_for(PASSIVE, examples)
    grids, others = (gridded(runs, PASSIVE, least_s=WINDOW_S) for runs in (known, outside))
    if len({grid.example.link for grid in grids}) < FEWEST_LINKS:
        raise UsageError(too_few_links(dataset))
    beside = even(others, WINDOW_S, base_known=True) if others else None
    noise = replace(recorded_noise(dataset), has_radio=False)
    noisy = even(grids, WINDOW_S, noise_s=partial(noise.drawn, np.random.default_rng(seed)))
    return PassiveData(dataset, examples, grids, even(grids, WINDOW_S, base_known=True), noisy, beside)


def numbers_of(mixes: Texts) -> Numbers:
    """Return the number in MIXES of each."""
    return np.array([MIXES.index(mix) for mix in mixes])


def folds_by_link(links: Texts, dice: np.random.Generator) -> Iterator[Booleans]:
    """Yield which windows are judged by what is learnt from the links of all others, fold by fold."""
    names = np.array(sorted(set(links)))
    dice.shuffle(names)
    for fold in range(min(FOLDS, len(names))):
        yield np.isin(links, names[fold::FOLDS])


def figures_of_passive(said: Numbers, mixes: Numbers, links: Texts) -> dict[str, Any]:
    """Return how right what was said of windows of unseen links is."""
    groups = np.array([GROUP_OF[mix] for mix in MIXES])
    by_link = [float((said == mixes)[links == link].mean()) for link in sorted(set(links))]
    return {
        "windows": len(mixes),
        "six": round(float((said == mixes).mean()), 4),
        "three": round(float((groups[said] == groups[mixes]).mean()), 4),
        "six by link": {"least": round(min(by_link), 4), "most": round(max(by_link), 4)},
        "confusion": {
            mix: {other: int(((mixes == i) & (said == j)).sum()) for j, other in enumerate(MIXES)}
            for i, mix in enumerate(MIXES)
        },
    }


def line_of(figure: dict[str, Any], how: str) -> str:
    """Return figures in words."""
    return (
        f"{figure['way']}, {figure['window_s']:g} s, {how}, {figure['windows']} windows of unseen links: "
        f"{figure['six']:.3f} of six, {figure['three']:.3f} of three"
    )


def card_of(
    data: PassiveData, what: str, command: str, libraries: Sequence[str], figures: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the card of a model."""
    return {
        "what": what,
        "command": command,
        "made with": {
            "mpx": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in libraries},
        },
        "data": data_of(data.dataset, data.examples),
        "parts": list(figures),
    }
