"""What the service tells of a task, and how often it is asked. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpx.endpoints.globus.described import time_of
from mpx.endpoints.globus.refusals import LASTING, of_code
from mpx.errors import ConnectionLost, DestinationError, MpxError
from mpx.text import shown
from mpx.units import counted, format_size

ACTIVE = ("ACTIVE", "INACTIVE")  # statuses of a task that has not ended
_SUBTASKS = ("succeeded", "pending", "retrying", "failed", "expired", "canceled", "skipped_errors")
_FIRST_WAIT_S, _LONGEST_WAIT_S, _PART = 0.25, 15.0, 0.1
_MOST_SHOWN = 200


def wait_s(elapsed_s: float) -> float:
    """Return how long to wait before a task is looked at again: longer, the longer it has run already."""
    return min(_LONGEST_WAIT_S, max(_FIRST_WAIT_S, elapsed_s * _PART))


@dataclass(frozen=True, slots=True)
class TaskState:
    """How far a task is. Bytes and files are those of the task, whoever waits for it."""

    task_id: str
    status: str
    label: str = ""
    files_moved: int = 0
    files_same: int = 0  # that were there already
    moved_bytes: int = 0
    faults: int = 0
    skipped: int = 0  # that the source does not give out, or does not have
    subtasks: tuple[tuple[str, int], ...] = ()
    is_paused: bool = False
    trouble: str = ""  # the code of what it hit last
    trouble_told: str = ""
    fatal: str = ""  # the code of what ended it
    fatal_told: str = ""
    deadline: str = ""
    asked_s: float | None = None  # Unix time, when it was submitted
    ended_s: float | None = None

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.status in ACTIVE

    @property
    def is_done(self) -> bool:
        """Whether all has been done that can be."""
        return self.status == "SUCCEEDED"

    @property
    def has_lasting_trouble(self) -> bool:
        """Whether it has hit what does not pass by trying again, as the service does."""
        return self.trouble in LASTING

    @property
    def progress(self) -> tuple[int, int, int, int]:
        """What grows while it gets on."""
        done = sum(count for name, count in self.subtasks if name in ("succeeded", "skipped_errors"))
        return self.moved_bytes, self.files_moved, self.files_same, done

    @property
    def why(self) -> str:
        """Why it has ended, or does not get on, in words."""
        code, text = (self.fatal, self.fatal_told) if self.fatal else (self.trouble, self.trouble_told)
        text = " ".join(text.split())[:_MOST_SHOWN]
        if self.is_expired:
            return f"its deadline has passed ({self.deadline or 'that of Globus'}): {shown(text) or code}"
        return shown(f"{text} ({code})" if text and code else text or code or self.status)

    @property
    def is_expired(self) -> bool:
        """Whether it has ended as its deadline passed."""
        return self.fatal == "EXPIRED" or dict(self.subtasks).get("expired", 0) > 0

    def error(self) -> MpxError:
        """Return what it means that it has not done all."""
        code = "EXPIRED" if self.is_expired else self.fatal or self.trouble
        text = f"Globus task {self.task_id} failed: {self.why}"
        if code.startswith("CANCELED"):
            return MpxError(f"Globus task {self.task_id} was cancelled at Globus: {self.why}")
        return of_code(code, text, DestinationError)

    def summary(self) -> str:
        """Return a line for the report."""
        parts = [counted(self.files_moved, "file"), format_size(self.moved_bytes)]
        parts += [f"{self.files_same} the same already"] if self.files_same else []
        parts += [f"{counted(self.faults, 'fault')}"] if self.faults else []
        some = [f"{count} {name.replace('_', ' ')}" for name, count in self.subtasks if count]
        parts += [f"subtasks: {', '.join(some)}"] if some else []
        return f"Globus task {self.task_id}: {self.status}, {', '.join(parts)}"


def state_of(told: Mapping[str, Any], task_id: str) -> TaskState:
    """Read what the service tells of that task; raises ConnectionLost for nonsense, and for another task."""
    status = told.get("status")
    if told.get("task_id") != task_id:
        raise ConnectionLost(f"Globus is asked for the task {task_id}, and tells of another one")
    if status not in (*ACTIVE, "SUCCEEDED", "FAILED"):
        raise ConnectionLost(f"Globus tells no status of a task that there is: {shown(repr(status)[:50])}")
    fatal = told.get("fatal_error")
    fatal = fatal if isinstance(fatal, dict) else {}
    return TaskState(
        task_id,
        status,
        _text(told.get("label")),
        _count(told, "files_transferred"),
        _count(told, "files_skipped"),
        _count(told, "bytes_transferred"),
        _count(told, "faults"),
        _count(told, "subtasks_skipped_errors"),
        tuple((name, _count(told, f"subtasks_{name}")) for name in _SUBTASKS),
        told.get("is_paused") is True,
        _trouble(told),
        _text(told.get("nice_status_details")) or _text(told.get("nice_status_short_description")),
        _text(fatal.get("code")),
        _text(fatal.get("description")),
        _text(told.get("deadline")),
        time_of(told.get("request_time")),
        time_of(told.get("completion_time")),
    )


def _trouble(told: Mapping[str, Any]) -> str:
    code = _text(told.get("nice_status"))
    return "" if code in ("OK", "Queued", "QUEUED") else code


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
