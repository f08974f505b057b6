"""Tasks of an earlier run of the same copy that still run: they are waited for, and not submitted again.

Of one that has ended since, what it has copied is found as all that is there is; LeftBehind knows of it.
"""

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import replace

from mpx.endpoints.globus.left_behind import LeftBehind
from mpx.endpoints.globus.task_book import BegunTask, Item, item_of
from mpx.endpoints.globus.tasks import GlobusTasks, TaskOfOthers
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry
from mpx.errors import MpxError
from mpx.report import OnNote, Severity


class AdoptedTasks:
    """For any thread. Looked for once, by whoever asks first."""

    def __init__(self, tasks: GlobusTasks, left: LeftBehind, note: OnNote) -> None:
        self._tasks, self._left, self._note = tasks, left, note
        self._lock = threading.Lock()  # guards the next two
        self._was_looked_for = False
        self._by_item: dict[Item, BegunTask] = {}

    def first_of(
        self, files: Sequence[FileTransfer], retry: Retry
    ) -> tuple[BegunTask | None, list[FileTransfer], list[FileTransfer]]:
        """Return a task that has some of these files, those, and the others; None: all are to be copied."""
        with self._lock:
            if not self._was_looked_for:
                self._look(retry)
                self._was_looked_for = True
            found = next((task for file in files if (task := self._by_item.get(item_of(file)))), None)
            if found is None:
                return None, list(files), []
            mine = [file for file in files if self._by_item.get(item_of(file)) is found]
        return found, mine, [file for file in files if file not in mine]

    def forget(self, files: Sequence[FileTransfer]) -> None:
        """Have files copied by tasks of this run, should they come again."""
        with self._lock:
            for file in files:
                self._by_item.pop(item_of(file), None)

    def end_others(self, retry: Retry) -> None:
        """Cancel those that nobody has waited for, once all that was to be copied is: best effort."""
        self._left.end()
        for begun in self._tasks.book.begun():
            if self._left.has_task(begun.submission):
                continue  # files that were given up may be there in part
            with contextlib.suppress(MpxError):
                self._end(begun, retry)
                self._tasks.book.ended(begun.submission)

    def _end(self, begun: BegunTask, retry: Retry) -> None:
        try:
            state = self._tasks.find(begun, retry)
        except TaskOfOthers as error:
            self._note(str(error), Severity.NOTICE)
            return
        if state is not None and state.is_active:
            self._tasks.cancel(replace(begun, task_id=state.task_id))
            text = f"Globus task {state.task_id} of an earlier run is not needed, and was cancelled"
            self._note(text, Severity.NOTICE)

    def _look(self, retry: Retry) -> None:
        for begun in self._tasks.book.begun():
            try:
                state = self._tasks.find(begun, retry)
            except TaskOfOthers as error:
                # Another task copies its files meanwhile. Both write the same, unless the source changes, and
                # what counts is what is there once ours has ended. It stays noted until this copy
                # has come to its end, for who may see it.
                self._note(str(error), Severity.NOTICE)
                continue
            if state is None:
                self._tasks.book.ended(begun.submission)
                continue
            if not state.is_active:
                self._left.took(begun, state)
                continue
            known = begun if begun.task_id else self._tasks.book.started(begun.submission, state.task_id)
            if known.how != self._tasks.how:
                self._left.took(known, self._tasks.end(known, retry))
                text = f"Globus task {state.task_id} of an earlier run, with other options, was cancelled"
                self._note(text, Severity.NOTICE)
                continue
            self._by_item.update(dict.fromkeys(begun.items, known))
            text = f"Globus task {state.task_id} of an earlier run still runs, and is waited for"
            self._note(text, Severity.NOTICE)
