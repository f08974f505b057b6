"""The labs of this machine, a line each: up, being built, or remains of an interrupted one."""

import os

from mpx_lab import cleanup, state
from mpx_lab.lab import Lab
from mpx_lab.state import LabError


def found() -> list[str]:
    """Return a line for each lab; remains of interrupted ones are listed, not removed."""
    ids = state.lab_ids()
    if os.geteuid() != 0:
        return [f"there may be a lab '{lab_id}'; 'sudo mpx lab list' shows its state" for lab_id in ids]
    return [line for line in map(_line, ids) if line]


def meant(lab_id: str) -> str:
    """Return the line for one lab; if it was interrupted, remove its remains.

    Raises UsageError without root, and for text that cannot be an ID.
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
        with state.locked(lab_id, wait=False):  # which also removes a lock without a lab
            if state.load(lab_id):
                return _up(lab_id)
            if cleanup.remains(lab_id):
                return (
                    f"the lab '{lab_id}' was interrupted; "
                    f"remove its remains with 'mpx lab down --lab {lab_id}'"
                )
    except LabError as error:
        return str(error)
    return ""


def _up(lab_id: str) -> str:
    return f"there is a lab now: {lab_id}"
