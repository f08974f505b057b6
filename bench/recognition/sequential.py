"""How right readings are together, and after how long they decide: figures by link (ops_sequential.py)."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpx_train.readings import ReadSeries

from mpx.recognition.evidence import EvidenceRule
from mpx.recognition.mix import GROUP_OF, GROUPS, MIXES, UNKNOWN, Mix

WINDOW_S = 10.0
AT_S = (10, 20, 30, 60)
ERRORS = (0.01, 0.05)
CLASSES = ("six", "three")
TEMPERS, FADES, UNKNOWNS = (0.03, 0.05, 0.1, 0.2), (0.9, 0.95, 0.97, 0.98, 1.0), (0.0, 0.2, 1.0)
LIMITS = (*np.arange(0.5, 0.95, 0.025).round(3).tolist(), *np.arange(0.95, 0.9995, 0.0025).round(4).tolist())


@dataclass(frozen=True)
class Answers:
    """What is said of a series second for second: the likeliest of six or three, and how sure that is."""

    link: str
    true: str
    names: Sequence[str]
    sure: Sequence[float]  # 0 where it is said to be unknown

    def is_right(self, seconds: float) -> bool:
        """Return whether what is said after so many seconds is true."""
        return self.names[min(len(self.names) - 1, round(seconds - WINDOW_S))] == self.true

    def decided(self, limit: float) -> tuple[float, bool] | None:
        """Return after how many seconds it is first so sure, and whether that is right; None: never."""
        first = next((i for i, sure in enumerate(self.sure) if sure >= limit), None)
        return None if first is None else (WINDOW_S + first, self.names[first] == self.true)


def added_up(series: ReadSeries, rule: EvidenceRule) -> list[Mix]:
    """Return what all readings until then say, second for second."""
    evidence, found = None, []
    for reading in series.readings:
        evidence = rule.after(evidence, reading, 1.0)
        found.append(evidence.mix)
    return found


def answers(series: ReadSeries, said: Sequence[Mix], classes: str) -> Answers:
    """Return it as answers about the six mixes or the three groups."""
    true = series.mix if classes == "six" else GROUP_OF[series.mix]
    return Answers(series.link, true, *zip(*(_named(mix, classes) for mix in said), strict=True))


@dataclass(frozen=True)
class Tuned:
    """What is chosen by series of some links."""

    rule: EvidenceRule
    sure: Mapping[str, Mapping[str, float]]  # the least probability that decides, by classes and error


def tuned(series: Sequence[ReadSeries]) -> Tuned:
    """Return the rule that makes the true mixes likeliest at the end of each series, and limits with it."""
    rules = (EvidenceRule(*each) for each in itertools.product(TEMPERS, FADES, UNKNOWNS))
    rule = min(rules, key=lambda rule: _surprise(series, rule))
    return Tuned(rule, {classes: _limits(series, rule, classes) for classes in CLASSES})


def crossed(series: Sequence[ReadSeries], seed: int) -> list[tuple[ReadSeries, Tuned]]:
    """Return each series with what was tuned on the other half of the links, drawn at random."""
    links = sorted({each.link for each in series})
    random.Random(seed).shuffle(links)
    first = set(links[: len(links) // 2])
    halves = [[each for each in series if (each.link in first) == is_first] for is_first in (True, False)]
    return [(each, by) for half, other in (halves, halves[::-1]) for by in [tuned(other)] for each in half]


def figures(judged: Sequence[tuple[ReadSeries, Tuned]]) -> dict[str, Any]:
    """Return, for six and three classes, accuracy by seconds and decisions by the error that is allowed."""
    series = [each for each, _ in judged]
    last_s = WINDOW_S + min(len(each.readings) for each in series)
    found: dict[str, Any] = {"series": len(series), "links": len({each.link for each in series})}
    for classes in CLASSES:
        said = [answers(each, added_up(each, by.rule), classes) for each, by in judged]
        alone = [answers(each, each.readings, classes) for each in series]
        found[classes] = {
            "one window": {str(at): right(alone, at) for at in AT_S if at <= last_s},
            "all windows": {str(at): right(said, at) for at in AT_S if at <= last_s},
            "decisions": {
                str(error): decisions(
                    [
                        (each.link, each.decided(by.sure[classes][str(error)]))
                        for each, (_, by) in zip(said, judged, strict=True)
                    ]
                )
                for error in ERRORS
            },
        }
    return found


def decisions(made: Sequence[tuple[str, tuple[float, bool] | None]]) -> dict[str, float]:
    """Return the error of the decided (mean over links), the share undecided, and seconds until decided.

    `made`: of each series its link, and after how many seconds it was decided and whether rightly.
    """
    by_link: dict[str, list[bool]] = {}
    for link, found in made:
        if found:
            by_link.setdefault(link, []).append(not found[1])
    seconds = [found[0] for _, found in made if found]
    return {
        "error": float(np.mean([np.mean(each) for each in by_link.values()])) if by_link else 0.0,
        "undecided": 1 - len(seconds) / len(made),
        "median_s": float(np.median(seconds)) if seconds else 0.0,
        "p90_s": float(np.quantile(seconds, 0.9)) if seconds else 0.0,
    }


def right(said: Sequence[Answers], seconds: float) -> dict[str, float]:
    """Return the share that is right after so many seconds: mean over links, least and most."""
    links: dict[str, list[bool]] = {}
    for each in said:
        links.setdefault(each.link, []).append(each.is_right(seconds))
    by_link = [float(np.mean(each)) for each in links.values()]
    return {"mean": float(np.mean(by_link)), "least": min(by_link), "most": max(by_link)}


def unknown(series: Sequence[ReadSeries], rule: EvidenceRule) -> dict[str, float]:
    """Return the share said to be unknown: by the first window, by the last, and by all together."""
    return {
        "first window": float(np.mean([each.readings[0].name == UNKNOWN for each in series])),
        "last window": float(np.mean([each.readings[-1].name == UNKNOWN for each in series])),
        "all windows": float(np.mean([added_up(each, rule)[-1].name == UNKNOWN for each in series])),
    }


def _named(mix: Mix, classes: str) -> tuple[str, float]:
    if classes == "six":
        best = max(range(len(MIXES)), key=lambda i: mix.shares[i])
        name, share = MIXES[best], mix.shares[best]
    else:
        name, share = max(((group, mix.groups[group]) for group in GROUPS), key=lambda each: each[1])
    return name, 0.0 if mix.name == UNKNOWN else share


def _surprise(series: Sequence[ReadSeries], rule: EvidenceRule) -> float:
    """Return the mean of the negative logarithm of the probability of what is true, at the end."""
    return float(
        np.mean([-np.log(added_up(each, rule)[-1].shares[MIXES.index(each.mix)]) for each in series])
    )


def _limits(series: Sequence[ReadSeries], rule: EvidenceRule, classes: str) -> dict[str, float]:
    """Return the least probability from which on all keep each error on these links; 1 where none does."""
    said = [answers(each, added_up(each, rule), classes) for each in series]
    wrong = {
        limit: decisions([(each.link, each.decided(limit)) for each in said])["error"] for limit in LIMITS
    }
    return {
        str(error): next(
            (limit for limit in LIMITS if all(wrong[up] <= error for up in LIMITS if up >= limit)), 1.0
        )
        for error in ERRORS
    }
