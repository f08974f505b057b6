"""How often windows are said to be unknown: known ones (false alarms), and what is none of the mixes."""

from dataclasses import dataclass

import numpy as np

from mpx_train.crossfit import Heard

# Reno shares like CUBIC, so `cubic` is right for it, too; it is not learnt as outside traffic.
LIKE = {"reno": ("C",), "reno reno": ("C", "CC")}
MANY_ALARMS = 0.1  # of the windows of a link


@dataclass(frozen=True)
class Alarms:
    """False ones: shares of known windows that are said to be unknown."""

    mean: float
    most: float  # of all links
    links_with_many: float  # the share of links on which over a tenth are

    def __str__(self) -> str:
        by_link = f"{self.most:.0%} of a link at most, {self.links_with_many:.0%} of links over 10%"
        return f"{self.mean:.1%} ({by_link})"


def alarms(said: Heard) -> Alarms:
    """Return how many known windows are said to be unknown, overall and by link."""
    known = said.where(said.judged.is_known)
    links = known.judged.windows.link
    each = np.array([known.is_novel[links == link].mean() for link in np.unique(links)])
    return Alarms(float(known.is_novel.mean()), float(each.max()), float((each > MANY_ALARMS).mean()))


def said_to_be_unknown(said: Heard) -> dict[str, float]:
    """Return the share of each kind of outside traffic that is unknown, or what also counts as right."""
    others = said.where(~said.judged.is_known)
    found = {}
    for name in np.unique(others.judged.mix).tolist():
        rows = others.where(others.judged.mix == name)
        found[name] = float((rows.is_novel | np.isin(rows.likeliest, LIKE.get(name, ()))).mean())
    return found
