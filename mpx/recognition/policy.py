"""The congestion control that a policy uses beside a mix, and its substitute where that may not be used.

The class of the background decides what is fair: BBR beside CUBIC takes most of the link, and CUBIC beside
BBR gets little of it (OPS: Anvari and Lu, Computers 10(6):76, 2021, section 3). The policy decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mpx.choices import BBR, CUBIC, FAIR, FAST, RENO, SCAVENGER
from mpx.recognition.mix import ANY_BBR, CUBIC_ONLY, NOBODY

_WANTED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        FAIR: {NOBODY: CUBIC, CUBIC_ONLY: CUBIC, ANY_BBR: BBR},
        FAST: {NOBODY: BBR, CUBIC_ONLY: BBR, ANY_BBR: BBR},
        SCAVENGER: {NOBODY: CUBIC, CUBIC_ONLY: CUBIC, ANY_BBR: CUBIC},
    }
)
# Substitutes are no more aggressive; the kernel's own choice is always permitted, and comes last.
_INSTEAD: Mapping[str, tuple[str, ...]] = MappingProxyType({CUBIC: (CUBIC, RENO), BBR: (BBR, CUBIC, RENO)})


@dataclass(frozen=True, slots=True)
class Wanted:
    """The congestion control of a policy, and what is used; `refused` is why these differ, else empty."""

    congestion: str
    taken: str | None  # None: none of them may be used, so the kernel's own choice remains
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Switch:
    """A congestion control to switch to, and why."""

    congestion: str
    reason: str


def before_anything_is_known(policy: str) -> str:
    """Return what to start with: as if there were no other traffic."""
    return _WANTED[policy][NOBODY]


def wanted(policy: str, group: str) -> str:
    """Return the congestion control of `policy` beside `group` (of mix.GROUPS)."""
    return _WANTED[policy][group]


def permitted(congestion: str, why_not: Callable[[str], str]) -> Wanted:
    """Return `congestion`, or the nearest that may be used.

    `why_not` returns why one may not be used, an empty text where it may.
    """
    refused = why_not(congestion)
    usable = (name for name in _INSTEAD[congestion] if not (refused if name == congestion else why_not(name)))
    return Wanted(congestion, next(usable, None), refused)


def why_not_from(
    route: str | None, why_not: Callable[[str], str], *, is_locked: bool, are_open: bool = False
) -> Callable[[str], str]:
    """Return `why_not` for a route that sets the congestion control `route` of its connections.

    That one needs no permission for new connections, but does for those that `are_open`; where it
    `is_locked`, there is no other.
    """
    locked = f"the route to the server has {route} and locks it (as root: ip route change ... congctl NAME)"

    def why_not_there(name: str) -> str:
        if name == route and (is_locked or not are_open):
            return ""
        return locked if is_locked else why_not(name)

    return why_not_there
