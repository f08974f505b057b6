"""The tasks that a copy has begun at the service, kept on disk so that the next run goes on with them.

    KEY.tasks in the state folder: {"mpx": 1, "tasks": [{"submission": "...", "task": "..." or null,
                                    "items": [[source, name, size, modified], ...],
                                    "how": "..."}, ...]}

KEY is that of the journal, whose lock keeps others away. A task is noted before it is submitted, so that one
whose answer was lost is found by its label, and removed once it has ended: with `--overwrite never` once
nothing that it may have left is in doubt (see LeftBehind).
"""

import contextlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mpx.engine.file_transfer import FileTransfer
from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder

_VERSION = 1
_LARGEST_BYTES = 64 << 20
Item = tuple[str, str, int, float | None]


def item_of(file: FileTransfer) -> Item:
    """Return what tells whether a file is the one that a task was given."""
    return file.source, file.final, file.listed_bytes or 0, file.modified_s


@dataclass(frozen=True, slots=True)
class BegunTask:
    """A task, and what it was given."""

    submission: str
    task_id: str  # empty: not known
    items: frozenset[Item] = field(repr=False)
    how: str = ""  # it copies them: see GlobusTasks.how


class TaskBook:
    """For any thread; `key`: of the copy. Raises UsageError where it cannot be written."""

    def __init__(self, key: str) -> None:
        self._name = f"{key}.tasks"
        self._lock = threading.Lock()  # guards the next one
        self._begun: dict[str, BegunTask] = {each.submission: each for each in self._read()}

    def begun(self) -> list[BegunTask]:
        """Return the tasks that have not ended, as far as is known."""
        with self._lock:
            return list(self._begun.values())

    def begin(self, submission: str, files: Sequence[FileTransfer], how: str) -> BegunTask:
        """Note a task that is about to be submitted."""
        return self._put(BegunTask(submission, "", frozenset(map(item_of, files)), how))

    def started(self, submission: str, task_id: str) -> BegunTask:
        """Note under which id a task runs."""
        with self._lock:
            known = self._begun[submission]
        return self._put(replace(known, task_id=task_id))

    def _put(self, task: BegunTask) -> BegunTask:
        with self._lock:
            self._begun[task.submission] = task
            self._write()
        return task

    def ended(self, submission: str) -> None:
        """Forget a task that has ended."""
        with self._lock:
            if self._begun.pop(submission, None) is not None:
                self._write()

    def _read(self) -> list[BegunTask]:
        with StateFolder() as state:
            try:
                fd = state.open(self._name, os.O_RDONLY)
            except OSError:
                return []
            with os.fdopen(fd, "rb") as file:
                text = file.read(_LARGEST_BYTES)
        try:
            kept = json.loads(text)
            return [_task(each) for each in kept["tasks"]] if kept["mpx"] == _VERSION else []
        except (ValueError, KeyError, TypeError, RecursionError):
            return []  # cut short by a crash: what the tasks have copied is found by looking

    def _write(self) -> None:
        tasks = [
            {
                "submission": each.submission,
                "task": each.task_id or None,
                "items": sorted(each.items, key=str),
                "how": each.how,
            }
            for each in self._begun.values()
        ]
        with StateFolder() as state:
            try:
                if not tasks:
                    state.unlink(self._name)
                    return
                aside = f"{self._name}.new"
                with os.fdopen(state.create(aside), "w", encoding="utf-8") as file:
                    json.dump({"mpx": _VERSION, "tasks": tasks}, file)
                state.rename(aside, self._name)
            except OSError as error:
                with contextlib.suppress(OSError):
                    state.unlink(f"{self._name}.new")
                raise UsageError(
                    f"cannot write {state.path / self._name}: {error.strerror}; set MPX_STATE_DIR to a "
                    "folder you can write"
                ) from None


def _task(kept: Any) -> BegunTask:
    items = frozenset(
        (str(source), str(final), int(size), None if modified is None else float(modified))
        for source, final, size, modified in kept["items"]
    )
    return BegunTask(str(kept["submission"]), str(kept["task"] or ""), items, str(kept["how"]))
