"""Folders into which nothing goes: where a server has objects only (S3), these are left out, and told."""

import posixpath

from mpx.engine.endpoint import Endpoint, Kind
from mpx.location import shown_place
from mpx.transfer.tree_walk import Task
from mpx.units import counted


class EmptyFolders:
    """For the thread that lists; a folder is seen before what is in it."""

    def __init__(self, destination: Endpoint) -> None:
        self._location = destination.location
        self._are_kept = destination.capabilities.keeps_folders
        self._empty: dict[str, None] = {}  # so far

    def saw(self, task: Task) -> None:
        """Note what is listed, whatever becomes of it."""
        if self._are_kept:
            return
        self._empty.pop(posixpath.dirname(task.target), None)
        if task.info.kind is Kind.FOLDER:
            self._empty[task.target] = None

    @property
    def note(self) -> str:
        """How many were left out; empty where none was."""
        if not self._empty:
            return ""
        first = shown_place(str(self._location.at(next(iter(self._empty)))))
        others = f" and {counted(len(self._empty) - 1, 'other')}" if len(self._empty) > 1 else ""
        many = counted(len(self._empty), "empty folder")
        return f"{many} left out, as {self._location.scheme}:// has objects only: {first}{others}"
