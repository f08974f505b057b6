"""Measuring until a run is valid, and keeping account of those that were not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mpx_lab.validity import Validity

Result = TypeVar("Result")


@dataclass(frozen=True)
class Attempt(Generic[Result]):
    """One run and the verdict on it."""

    result: Result
    validity: Validity


@dataclass(frozen=True)
class Attempts(Generic[Result]):
    """All runs of one measurement, in order; only the last can be valid."""

    all: tuple[Attempt[Result], ...]

    @property
    def kept(self) -> Result | None:
        """What the valid run measured; None if none was valid."""
        last = self.all[-1]
        return last.result if last.validity.valid else None

    @property
    def thrown_out(self) -> tuple[Attempt[Result], ...]:
        """The runs that do not count."""
        return tuple(attempt for attempt in self.all if not attempt.validity.valid)


def until_valid(measure: Callable[[int], tuple[Result, Validity]], limit: int) -> Attempts[Result]:
    """Call `measure` with 0, 1, ... until a run is valid, `limit` times at most."""
    if limit < 1:
        raise ValueError(f"at most {limit} runs: at least one must be permitted")
    attempts: list[Attempt[Result]] = []
    for number in range(limit):
        attempts.append(Attempt(*measure(number)))
        if attempts[-1].validity.valid:
            break
    return Attempts(tuple(attempts))
