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
NO_IDEA = (1 / len(MIXES),) * len(MIXES)  # the shares where nothing was read


@dataclass(frozen=True, slots=True)
class Mix:
    """The background as a classifier sees it.

    `probability` is that of the named mix among the six. For `unknown` it is the share of known series with
    less novelty than this one; `shares` and groups then are those that it would have as one of the six.
    """

    name: str  # of MIXES, or UNKNOWN
    probability: float
    shares: Sequence[float]  # the probability of each of MIXES, in their order; they sum to 1

    @property
    def groups(self) -> Mapping[str, float]:
        """The probability of each of GROUPS; they sum to 1."""
        return {
            group: float(sum(p for mix, p in zip(MIXES, self.shares, strict=True) if GROUP_OF[mix] == group))
            for group in GROUPS
        }

    @property
    def group(self) -> str:
        """The most probable group, which decides; it need not contain the most probable mix."""
        groups = self.groups
        return max(GROUPS, key=lambda each: groups[each])


def likeliest(probabilities: Sequence[float]) -> Mix:
    """Return the most probable mix, by the probabilities of MIXES in their order."""
    best = max(range(len(MIXES)), key=lambda i: probabilities[i])
    return Mix(MIXES[best], float(probabilities[best]), tuple(map(float, probabilities)))
