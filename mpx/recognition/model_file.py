"""A model on disk: a folder with `model.json` and `arrays.npz`.

Nothing in it is executed: arrays are read without pickles, and the type, size and values of each are checked.
`model.json` holds the card (what the model was made of, and its accuracy), the parts, and the SHA-256 sum of
all, which is checked first, so that a damaged model is recognised. A model that was made for other features
than this version computes is refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mpx.errors import UsageError
from mpx.recognition.data_folder import Arrays, Damaged, array, number, read_folder
from mpx.recognition.features import FEWEST_STEPS, feature_names
from mpx.recognition.mix import MIXES
from mpx.recognition.model import Model
from mpx.recognition.novelty import Places, Ranks, RanksByLikeliest
from mpx.recognition.observation import KINDS, period_s
from mpx.recognition.trees_file import FILED, trees_of
from mpx.recognition.window_classifier import WindowClassifier
from mpx.recognition.windows import STEP_S, steps_of

FORMAT = "mpx-ops-model-2"
LONGEST_WINDOW_S = 120.0
PLACES = {"centre": "<f8", "spread": "<f8", "axes": "<f2", "means": "<f8"}
RANKS = dict.fromkeys(("distances", "outsides", "together"), "<f8")
TABLES = ("counts", "axes", "means", *RANKS)  # the others are plain rows
PART_KEYS = {"kind", "window_s", "temperature", "features"}


def read_model(folder: Path) -> Model:
    """Read a model; raises UsageError, which says what is wrong, where it cannot be used."""
    try:
        said, arrays = read_folder(folder, FORMAT)
        if said["mixes"] != list(MIXES) or said["step_s"] != STEP_S:
            raise Damaged("it was made for other mixes, or for another rate of probes")
        parts: dict[str, list[WindowClassifier]] = {}
        for number, part in enumerate(said["parts"]):
            made = _part(part, f"{number}.", arrays)
            parts.setdefault(made.kind, []).append(made)
        if arrays:
            raise Damaged(f"the array {min(arrays)} belongs to no part")
    except Damaged as error:
        raise UsageError(
            f"{folder} is not a model that this version of mpx can use: {error}; make one with: "
            "mpx train DATASET -o NEW_FOLDER"
        ) from None
    return Model(
        {kind: sorted(found, key=lambda part: part.window_s) for kind, found in parts.items()}, said["card"]
    )


def _part(said: object, prefix: str, arrays: Arrays) -> WindowClassifier:
    """Return a part; its arrays are removed from `arrays`."""
    if not isinstance(said, dict) or set(said) != PART_KEYS:
        raise Damaged(f"a part has other keys than {', '.join(sorted(PART_KEYS))}")
    kind = said["kind"]
    if kind not in KINDS:
        raise Damaged(f"a part is for {kind!r}, not one of {', '.join(KINDS)}")
    window_s = number(said, "window_s", max(FEWEST_STEPS * STEP_S, period_s(kind)), LONGEST_WINDOW_S)
    temperature = number(said, "temperature", 0.01, 100.0)
    names = list(feature_names(steps_of(window_s), kind))
    if said["features"] != names:
        raise Damaged("it was made for other features than this version computes")
    try:
        trees = trees_of(_some(arrays, prefix, FILED))
        places = Places(**{name: of.astype("<f8") for name, of in _some(arrays, prefix, PLACES).items()})
        of_none, of_others = _rows(_some(arrays, prefix, RANKS), 2)
        ranks = RanksByLikeliest(Ranks(**of_none), Ranks(**of_others))
    except ValueError as error:
        raise Damaged(str(error)) from None
    if trees.features > len(names) or len(places.centre) != len(names):
        raise Damaged("its arrays refer to more features than there are")
    if trees.counts.shape[1] != len(MIXES) + 1 or len(places.means) != len(MIXES):
        raise Damaged("its arrays are for another number of mixes")
    return WindowClassifier(kind, window_s, trees, temperature, places, ranks)


def _rows(tables: Mapping[str, NDArray[Any]], count: int) -> list[dict[str, NDArray[Any]]]:
    """Return the rows of tables that each have so many."""
    if any(len(table) != count for table in tables.values()):
        raise Damaged(f"{', '.join(tables)} have other than {count} rows")
    return [{name: table[row] for name, table in tables.items()} for row in range(count)]


def _some(arrays: Arrays, prefix: str, kinds: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    return {
        name: array(arrays, prefix + name, kind, 2 if name in TABLES else 1) for name, kind in kinds.items()
    }
