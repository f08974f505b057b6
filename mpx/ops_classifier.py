"""OPS: recognises the congestion control of the background from round-trip times, and says how sure it is.

The way into `mpx/recognition/`. A `Classifier` reads a series of round-trip times and returns a mix:
none, C, B, CC, BC, BB (C: CUBIC, B: BBR), or unknown. `load` gives one of those that come with mpx, or of
the user's own (docs/recognition.md): trees over features, or what OPS compares ("optimization through
protocol selection", Anvari and Lu, Computers 10(6):76, 2021): nearest neighbours in dynamic time warping, a
network, support vectors, Gaussian naive Bayes. `NearestNeighbours` is the first as published, which others
are compared with (bench/ops_*.py). numpy is imported only where a classifier is used.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mpx_models import BACKGROUND as SHIPPED
from mpx_models import KNN_DTW as SHIPPED_TEMPLATES

from mpx.choices import KNN_DTW, TREES
from mpx.errors import UsageError
from mpx.recognition.classifier import Classifier
from mpx.recognition.mix import MIXES, NO_IDEA, UNKNOWN, Mix
from mpx.recognition.observation import MODEL_VARIABLE, PASSIVE, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe

if TYPE_CHECKING:
    from mpx.recognition.neighbours import Texts
    from mpx.recognition.windows import Floats

__all__ = [
    "SHIPPED",
    "SHIPPED_MODELS",
    "Classifier",
    "NearestNeighbours",
    "load",
    "load_beside_data",
    "named_model",
]

SHIPPED_MODELS: Mapping[str, Path] = MappingProxyType({TREES: SHIPPED, KNN_DTW: SHIPPED_TEMPLATES})
RADIUS = 10  # the paper's, of the Sakoe-Chiba band: samples may be compared that are so many seconds apart


def named_model() -> str:
    """Return the folder of another model than those that came with mpx, if the user names one; else ""."""
    return os.environ.get(MODEL_VARIABLE, "")


def load(path: Path | None = None, classifier: str = TREES) -> Classifier:
    """Read a model: that folder, else the one that MPX_MODEL names, else the one that came with mpx.

    `classifier`: of choices.CLASSIFIERS, which of those that came with mpx. Raises UsageError where there is
    none, or it is damaged.
    """
    shipped, named = SHIPPED_MODELS[classifier], named_model()
    if path is None and not named and not shipped.exists():
        raise UsageError(
            "this version of mpx comes without a model of background traffic; make one with mpx train, and "
            f"name its folder in {MODEL_VARIABLE}"
        )
    if path is not None or not named:
        return _read(path or shipped)
    try:
        return _read(Path(named))
    except UsageError as error:
        raise UsageError(
            f"the model that {MODEL_VARIABLE} names cannot be used: {error}; unset it for the shipped one"
        ) from None


def load_beside_data() -> Classifier:
    """Read the model for a copy under way: as `load`, but trees where the user's knows passive probes only.

    Raises UsageError as `load` does.
    """
    model = load()
    return model if model.name == TREES else _read(SHIPPED)


def _read(folder: Path) -> Classifier:
    """Read a model of any kind; what is damaged is read as one of trees, which says so."""
    from mpx.recognition.data_folder import Damaged, format_of
    from mpx.recognition.estimator_file import FORMATS, read_estimators
    from mpx.recognition.model_file import read_model
    from mpx.recognition.template_file import FORMAT, read_templates

    try:
        form = format_of(folder)
    except Damaged:
        form = ""
    if form == FORMAT:
        return read_templates(folder)
    if isinstance(form, str) and form in FORMATS:
        return read_estimators(folder, form)
    return read_model(folder)


@dataclass(frozen=True)
class NearestNeighbours:
    """The paper's classifier: a vote of the k known windows that are nearest in dynamic time warping (DTW).

    A window is a row of round-trip times in milliseconds, one a second; all are equally long. It knows no
    other way of watching than passive.
    """

    windows_ms: "Floats"
    mixes: "Texts"  # one for each window
    k: int = 1

    @property
    def name(self) -> str:
        """Which classifier it is."""
        return KNN_DTW

    def window_s(self, kind: str = PASSIVE) -> float:
        """Return how long a series has to be; raises UsageError for a kind other than passive."""
        if kind != PASSIVE:
            raise UsageError(f"nearest neighbours cannot classify '{kind}' series, only '{PASSIVE}' ones")
        return float(self.windows_ms.shape[1])

    def distances(self, windows_ms: "Floats") -> "Floats":
        """Return the distance of each window (a row each) to each known one."""
        from mpx.recognition.dtw import distances

        return distances(windows_ms, self.windows_ms, RADIUS)

    def predict(self, windows_ms: "Floats") -> "Texts":
        """Return the mix of each window."""
        from mpx.recognition.neighbours import vote

        return vote(self.distances(windows_ms), self.mixes, self.k)

    def classify(
        self,
        series: Sequence[Probe],
        base_s: float,  # noqa: ARG002 the paper compares round-trip times as they are
        goodput: Sequence[tuple[float, float]] | None = None,
        *,
        kind: str = PASSIVE,
        own: Own | None = None,
        responses: Sequence[QueueResponse] = (),  # noqa: ARG002 these come with data of our own
    ) -> Mix:
        """Return the mix of the end of a series; its probability is its share of the votes.

        Unknown where the series is too short, or most of its samples were lost. Raises UsageError where our
        own data flowed.
        """
        from mpx.recognition.neighbours import last_window_ms, votes

        self.window_s(kind)
        if own is not None or goodput is not None:
            raise UsageError("nearest neighbours cannot classify a path that carries data of our own")
        window_ms = last_window_ms(series, self.windows_ms.shape[1])
        if window_ms is None:
            return Mix(UNKNOWN, 1.0, NO_IDEA)
        names, counts = votes(self.distances(window_ms[None]), self.mixes, self.k)
        shares = {str(name): float(count) / self.k for name, count in zip(names, counts[0], strict=True)}
        best = max(shares, key=lambda name: shares[name])
        return Mix(best, shares[best], tuple(shares.get(mix, 0.0) for mix in MIXES))
