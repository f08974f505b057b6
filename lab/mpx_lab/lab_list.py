"""The labs of this machine, in words: which are up, being built, or left by a program that was killed."""

import os

from mpx_lab import cleanup, state
from mpx_lab.lab import Lab
from mpx_lab.state import LabError


def found() -> list[str]:
    """Return a line for each lab; what an interrupted one has left stays, as nobody asks for it to go."""
    ids = state.lab_ids()
    if os.geteuid() != 0:
        return [f"there may be a lab '{lab_id}'; 'sudo mpx lab list' says how it is" for lab_id in ids]
    return [line for line in map(_line, ids) if line]


def meant(lab_id: str) -> str:
    """Return the line for one lab, and remove what is left of it where it was interrupted.

    Raises UsageError without root or where that can be no ID.
    """
    try:
        Lab.attach(lab_id)
    except LabError as error:
        return str(error)
    return _up(lab_id)


def _line(lab_id: str) -> str:
    try:
        if state.load(lab_id):
            return _up(lab_id)
        with state.locked(lab_id, wait=False):  # which also removes a lock that is all there is
            if state.load(lab_id):
                return _up(lab_id)
            if cleanup.remains(lab_id):
                return (
                    f"the lab '{lab_id}' was interrupted; "
                    f"remove what it has left with 'mpx lab down --lab {lab_id}'"
                )
    except LabError as error:
        return str(error)
    return ""


def _up(lab_id: str) -> str:
    return f"there is a lab now: {lab_id}"
