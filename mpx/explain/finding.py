"""One sentence about a copy, and where it belongs."""

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What a sentence is for its reader."""

    FACT = "fact"
    LIMIT = "limit"  # what held the copy back
    PROBLEM = "problem"  # what went wrong
    ADVICE = "advice"  # what would have been faster, with the command or setting


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence that follows from the report."""

    kind: FindingKind
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """Findings about one subject: the copy, a path, what would have been faster."""

    title: str
    findings: tuple[Finding, ...]


def fact(text: str) -> Finding:
    """Return a fact."""
    return Finding(FindingKind.FACT, text)
