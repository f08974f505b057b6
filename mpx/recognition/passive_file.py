"""What models of paths without data of our own have in common on disk (data_folder.py)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx.recognition.data_folder import Arrays, Damaged, number, read_folder
from mpx.recognition.mix import MIXES
from mpx.recognition.observation import WAYS
from mpx.recognition.passive_model import PassiveModel, PassivePart
from mpx.recognition.windows import STEP_S

LONGEST_WINDOW_S = 120.0


def read_passive(
    folder: Path, form: str, name: str, part: Callable[[Any, str, Arrays], PassivePart]
) -> PassiveModel:
    """Read a model of this format; `part` reads one, with a prefix of its arrays, which it takes out of them.

    Raises UsageError, which says what is wrong, where the model cannot be used.
    """
    try:
        said, arrays = read_folder(folder, form)
        if said["mixes"] != list(MIXES) or said["step_s"] != STEP_S:
            raise Damaged("it was made for other mixes, or for another rate of probes")
        parts = [part(each, f"{place}.", arrays) for place, each in enumerate(said["parts"])]
        if arrays:
            raise Damaged(f"the array {min(arrays)} belongs to no part")
    except Damaged as error:
        raise UsageError(
            f"{folder} holds no model ({name}) that this mpx can use: {error}; make one with: "
            f"mpx train --classifier {name} DATASET -o NEW_FOLDER"
        ) from None
    return PassiveModel(name, {each.way: each for each in parts}, said["card"])


def way_of(said: Mapping[str, Any]) -> tuple[str, float]:
    """Return for which way of probing a part is, and how long its windows are; raises Damaged."""
    way = said["way"]
    if way not in WAYS:
        raise Damaged(f"a part is for {way!r}, not one of {', '.join(WAYS)}")
    return way, number(said, "window_s", 2.0, LONGEST_WINDOW_S)
