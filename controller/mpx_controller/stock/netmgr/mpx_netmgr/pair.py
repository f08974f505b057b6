"""The two hosts of a stream."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """Two addresses, and the task that streams between them belong to (empty: to none that has a name)."""

    source: str
    sink: str
    task: str = ""
