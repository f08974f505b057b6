"""The mix of congestion controls in the background: its names and its groups.

C is one CUBIC stream, B one BBR stream; CC, BC and BB are two. These are the six classes of "optimization
through protocol selection" (OPS: Anvari and Lu, Computers 10(6):76, 2021, figure 10b).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

MIXES = ("none", "C", "B", "CC", "BC", "BB")
NOBODY, CUBIC_ONLY, ANY_BBR = "none", "cubic only", "any bbr"
GROUPS = (NOBODY, CUBIC_ONLY, ANY_BBR)
GROUP_OF: Mapping[str, str] = MappingProxyType(
    {"none": NOBODY, "C": CUBIC_ONLY, "CC": CUBIC_ONLY, "B": ANY_BBR, "BC": ANY_BBR, "BB": ANY_BBR}
)
UNKNOWN = "unknown"  # unlike all training data


@dataclass(frozen=True, slots=True)
class Mix:
    """The background as a classifier sees it.

    `probability` is that of the named mix among the six. For `unknown` it is the share of known series with
    less novelty than this one; the groups then are those of the nearest mixes.
    """

    name: str  # of MIXES, or UNKNOWN
    probability: float
    groups: Mapping[str, float]  # the probability of each of GROUPS; they sum to 1

    @property
    def group(self) -> str:
        """The most probable group, which decides; it need not contain the most probable mix."""
        return max(GROUPS, key=lambda each: self.groups[each])


def likeliest(probabilities: Sequence[float]) -> Mix:
    """Return the most probable mix, by the probabilities of MIXES in their order."""
    best = max(range(len(MIXES)), key=lambda i: probabilities[i])
    return Mix(MIXES[best], float(probabilities[best]), groups_of(probabilities))


def groups_of(probabilities: Sequence[float]) -> Mapping[str, float]:
    """Return the probability of each group."""
    return {
        group: float(sum(p for mix, p in zip(MIXES, probabilities, strict=True) if GROUP_OF[mix] == group))
        for group in GROUPS
    }
