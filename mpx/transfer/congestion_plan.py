"""What the streams of a copy begin with, and whether the background decides on it later. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from mpx.choices import AUTO, FAST, KERNEL, SCAVENGER
from mpx.recognition.mix import GROUPS
from mpx.recognition.policy import before_anything_is_known, permitted, wanted
from mpx.report import Severity

SERVER_CHOOSES = (
    "the server sends, so its kernel sets the congestion control; change it there with "
    "'ip route change ... congctl NAME', or run mpx serve there"
)
FAST_NOT_HAD = f"--policy {FAST} is not available"


@dataclass(frozen=True, slots=True)
class Plan:
    """What streams begin with (None: their kernel's choice), and whether that may change while they flow."""

    congestion: str | None
    selects: bool = False
    yields: bool = False  # to all others, by pacing
    by_losses: bool = False  # what is lost decides, where nothing of the background can be read
    note: str = ""  # what cannot be had, and what mends it
    severity: Severity = Severity.INFO  # of the note


def named(asked: str) -> str | None:
    """Return the congestion control that was asked for by name, None for auto and kernel."""
    return None if asked in (AUTO, KERNEL) else asked


def plan(
    asked: str,
    policy: str,
    why_not: Callable[[str], str] | None,
    why_not_open: Callable[[str], str] | None = None,
) -> Plan:
    """Return what to begin with.

    `why_not` says why who sends may not use a congestion control, an empty text where it may; None where
    it cannot be told to. `why_not_open` says so of streams that are open, if that is not the same.
    """
    yields = policy == SCAVENGER
    if asked == KERNEL:
        return Plan(None, yields=yields)
    if asked != AUTO and why_not is None:
        note = f"--congestion {asked} is not available: {SERVER_CHOOSES}"
        return Plan(None, yields=yields, note=note, severity=Severity.NOTICE)
    if asked != AUTO:
        return Plan(asked, yields=yields)
    if why_not is None:
        if policy == FAST:
            return Plan(None, note=f"{FAST_NOT_HAD}: {SERVER_CHOOSES}", severity=Severity.NOTICE)
        return Plan(None, yields=yields, note=SERVER_CHOOSES)
    first = permitted(before_anything_is_known(policy), why_not)
    if first.taken is None:
        note = f"--policy {policy} wants {first.congestion}, but {first.refused}"
        return Plan(None, yields=yields, note=note)
    others = {wanted(policy, group) for group in GROUPS} - {first.congestion}
    refused = [why for name in sorted(others) if (why := (why_not_open or why_not)(name))]
    notes = [f"--policy {policy} wants {first.congestion}, but {first.refused}"] if first.refused else []
    notes += [f"--policy {policy} may want another congestion control later, but {why}" for why in refused]
    selects = len(refused) < len(others)
    return Plan(first.taken, selects, yields, note="; ".join(notes))
