"""Values of a JSON object that somebody else may have written: each is checked as it is taken."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mpx.errors import UsageError
from mpx.text import shown

GIVE = "give a report that mpx copy --report has written"
LARGEST = 10**18  # of any number: bytes, bit/s or seconds of no copy are more


class Fields:
    """One JSON object; `where` names it in messages. What is not as a method says is a UsageError."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise UsageError(f"{where} is not an object; {GIVE}")
        self._values: Mapping[str, Any] = value
        self._where = where

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def _take(self, key: str) -> Any:
        if key not in self._values:
            raise UsageError(f"{self._where} has no '{key}'; {GIVE}")
        return self._values[key]

    def _wrong(self, key: str, what: str) -> UsageError:
        return UsageError(f"{self._where}: '{key}' is not {what}; the report is damaged, or is none")

    def text(self, key: str) -> str:
        """Return a text, in a form that can be shown and encoded."""
        value = self._take(key)
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        return clean(value)

    def text_or_none(self, key: str) -> str | None:
        """Return a text; None where the key is missing or null."""
        return self.text(key) if key in self else None

    def number(self, key: str) -> float:
        """Return a finite number of at least 0."""
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number")
        if not 0 <= value <= LARGEST or math.isnan(value):
            raise self._wrong(key, f"a number from 0 to {LARGEST:.0e}")
        return float(value)

    def number_from(self, key: str, least: float) -> float:
        """Return a finite number of at least `least`."""
        value = self.number(key)
        if value < least:
            raise self._wrong(key, f"at least {least:g}")
        return value

    def number_or_none(self, key: str) -> float | None:
        """Return the same; None where the key is missing or null."""
        return self.number(key) if key in self else None

    def share_or_none(self, key: str) -> float | None:
        """Return a number of at most 1; None where the key is missing or null."""
        value = self.number_or_none(key)
        if value is not None and value > 1:
            raise self._wrong(key, "a share from 0 to 1")
        return value

    def count(self, key: str) -> int:
        """Return a whole number of at least 0."""
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise self._wrong(key, "a whole number of at least 0")
        return value

    def count_or_none(self, key: str) -> int | None:
        """Return the same; None where the key is missing or null."""
        return self.count(key) if key in self else None

    def truth(self, key: str) -> bool:
        """Return true or false."""
        value = self._take(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def within(self, key: str) -> "Fields":
        """Return an object."""
        return Fields(self._take(key), f"{self._where}: '{key}'")

    def within_or_empty(self, key: str) -> "Fields":
        """Return an object, an empty one where the key is missing or null."""
        return self.within(key) if key in self else Fields({}, f"{self._where}: '{key}'")

    def items(self, key: str, most: int) -> Sequence[Any]:
        """Return a list, empty where the key is missing or null."""
        value = self._values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        if len(value) > most:
            raise self._wrong(key, f"a list of at most {most}")
        return value

    def objects(self, key: str, most: int) -> "Iterator[Fields]":
        """Yield the objects of a list, none where the key is missing or null."""
        for place, each in enumerate(self.items(key, most)):
            yield Fields(each, f"{self._where}: {key}[{place}]")

    def texts(self, key: str, most: int) -> Sequence[str]:
        """Return the texts of a list, none where the key is missing or null."""
        values = self.items(key, most)
        if not all(isinstance(each, str) for each in values):
            raise self._wrong(key, "a list of texts")
        return [clean(each) for each in values]

    def counts(self) -> Iterator[tuple[str, int]]:
        """Yield each key with its whole number."""
        for key in self._values:
            yield clean(key), self.count(key)


def clean(text: str) -> str:
    """Return a text without what moves a cursor or cannot be encoded."""
    return shown(text).encode("utf-8", "replace").decode()
