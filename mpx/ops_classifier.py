"""OPS: recognises the congestion control of the background from round-trip times, and says how sure it is.

The way into `mpx/recognition/`. A `Classifier` reads a series of round-trip times and returns a mix:
none, C, B, CC, BC, BB (C: CUBIC, B: BBR), or unknown. `load_model` gives the one that comes with mpx, or a
model of the user's own (docs/recognition.md). After Anvari and Lu, Computers 10(6):76, 2021.
"""

import os
from pathlib import Path

from mpx_models import BACKGROUND as SHIPPED

from mpx.errors import UsageError
from mpx.recognition.classifier import Classifier
from mpx.recognition.model import Model
from mpx.recognition.observation import MODEL_VARIABLE

__all__ = ["SHIPPED", "Classifier", "load_model", "model_is_named"]


def model_is_named() -> bool:
    """Tell whether the user asks for another model than the one that came with mpx."""
    return bool(os.environ.get(MODEL_VARIABLE))


def load_model(path: Path | None = None) -> Model:
    """Read a model: that one, else the one that MPX_MODEL names, else the one that came with mpx.

    Raises UsageError where there is none, or it is damaged.
    """
    from mpx.recognition.model_file import read_model

    named = os.environ.get(MODEL_VARIABLE)
    if path is None and not named and not SHIPPED.exists():
        raise UsageError(
            "this version of mpx comes without a model of who shares a path; make one with mpx train, and "
            "name its folder in MPX_MODEL"
        )
    if path is not None or not named:
        return read_model(path or SHIPPED)
    try:
        return read_model(Path(named))
    except UsageError as error:
        raise UsageError(
            f"{MODEL_VARIABLE} cannot be honoured: {error}; unset it for the shipped one"
        ) from None
