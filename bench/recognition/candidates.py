"""The classifiers that are compared: the paper's as printed, relatives of them, and ours.

Each is given the runs to learn from and the runs to judge, and says a mix for each window of the latter. All
see the same stretches of time; the paper's see one sample a second, the others ten.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpx_train.cut import Gridded, Labelled, drawn, even
from mpx_train.learn import DEFAULT, Kind
from mpx_train.paper import NEIGHBOURS, OTHERS, fit_other
from mpx_train.quant import quantiles
from mpx_train.rocket import Rocket
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mpx.ops_classifier import NearestNeighbours
from mpx.recognition.features import features
from mpx.recognition.neighbours import Texts
from mpx.recognition.windows import ProbeWindows

Floats = NDArray[np.float64]
ROCKET_NUMBERS = 4000


@dataclass(frozen=True)
class Task:
    """What a classifier is given."""

    learn: Sequence[Gridded]
    judge: Labelled
    kind: Kind
    seed: int

    def drawn(self, copies: int = 4) -> Labelled:
        """Return windows to learn from, at random places and disturbed."""
        dice = np.random.default_rng(self.seed)
        return drawn(self.learn, self.kind.window_s, copies, dice, self.kind.name)

    def known(self) -> Labelled:
        """Return windows to learn from as they are, one after the other."""
        return even(self.learn, self.kind.window_s)


def relative(windows: ProbeWindows) -> Floats:
    """Return round-trip times less the base, as a multiple of it."""
    return np.asarray(windows.rtt_s / windows.base_s[:, None] - 1)


def neighbours(series: Callable[[Labelled], Floats], k: int) -> Callable[[Task], Texts]:
    """Return the classifier by the k nearest in time warping."""

    def said(task: Task) -> Texts:
        known = task.known()
        return NearestNeighbours(series(known), known.mix, k).predict(series(task.judge))

    return said


def of_the_paper(name: str) -> Callable[[Task], Texts]:
    """Return one of the paper's other classifiers."""

    def said(task: Task) -> Texts:
        known = task.known()
        made = fit_other(name, known.paper_ms, known.mix, task.seed)
        return np.asarray(made.predict(task.judge.paper_ms))

    return said


def learnt(
    numbers: Callable[[ProbeWindows, str], Floats], estimator: Callable[[int], Any]
) -> Callable[[Task], Texts]:
    """Return a classifier of scikit-learn on some numbers of the windows."""

    def said(task: Task) -> Texts:
        some = task.drawn()
        made = estimator(task.seed).fit(numbers(some.windows, task.kind.name), some.mix)
        return np.asarray(made.predict(numbers(task.judge.windows, task.kind.name)))

    return said


def on_features(name: str) -> Callable[[Task], Texts]:
    """Return one of the paper's other classifiers on our features, as `mpx train` makes it."""
    return learnt(features, lambda seed: make_pipeline(StandardScaler(), OTHERS[name](seed)))


def rocket(task: Task) -> Texts:
    """MiniROCKET with a ridge classifier, on relative round-trip times."""
    some = task.drawn()
    series = relative(some.windows)
    kernels = Rocket.fit(series, ROCKET_NUMBERS, np.random.default_rng(task.seed))
    made = make_pipeline(StandardScaler(), RidgeClassifier(alpha=300.0)).fit(
        kernels.transform(series), some.mix
    )
    return np.asarray(made.predict(kernels.transform(relative(task.judge.windows))))


def extra_trees(seed: int) -> ExtraTreesClassifier:
    """Our forest, like all others here without knowledge of outside traffic, see mpx_train.learn."""
    return ExtraTreesClassifier(
        DEFAULT.trees,
        min_samples_leaf=DEFAULT.least_in_leaf,
        max_features=DEFAULT.features,
        n_jobs=-1,
        random_state=seed,
    )


def random_forest(seed: int) -> RandomForestClassifier:
    """As many trees, with optimised thresholds."""
    return RandomForestClassifier(
        DEFAULT.trees, min_samples_leaf=2, max_features=0.1, n_jobs=-1, random_state=seed
    )


def boosted(seed: int) -> HistGradientBoostingClassifier:
    """Gradient-boosted trees."""
    return HistGradientBoostingClassifier(max_iter=150, max_leaf_nodes=15, random_state=seed)


OURS = "extra trees"
PAPER_BEST = "1-NN DTW"
CANDIDATES: Mapping[str, Callable[[Task], Texts]] = {
    **{f"{k}-NN DTW": neighbours(lambda windows: windows.paper_ms, k) for k in NEIGHBOURS},
    **{name: of_the_paper(name) for name in OTHERS},
    **{f"{name} on features": on_features(name) for name in OTHERS},
    "1-NN DTW relative 10 Hz": neighbours(lambda windows: relative(windows.windows), 1),
    "MiniROCKET": rocket,
    "QUANT": learnt(lambda windows, _: quantiles(relative(windows)), extra_trees),
    "random forest": learnt(features, random_forest),
    "boosted trees": learnt(features, boosted),
    OURS: learnt(features, extra_trees),
}
