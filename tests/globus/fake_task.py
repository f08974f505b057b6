"""A task of the fake service: it really copies files, and tells of itself as the Transfer service does."""

import os
import shutil
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

EXISTENCE, CHECKSUM = 0, 3


@dataclass
class FakeTask:
    """Attributes are set by the thread that runs it, and by tests."""

    data: Mapping[str, Any]
    roots: tuple[Path, Path]
    task_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "ACTIVE"
    is_paused: bool = False
    nice: tuple[str, str] = ("OK", "")
    fatal: tuple[str, str] = ("", "")
    moved: list[Mapping[str, str]] = field(default_factory=list)
    same: int = 0
    moved_bytes: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    expired: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    asked_s: float = field(default_factory=time.time)
    ended_s: float | None = None

    @property
    def items(self) -> list[Mapping[str, str]]:
        return list(self.data["DATA"])

    def fault(self, code: str, details: str) -> None:
        """Tell of something that went wrong, the latest first."""
        self.events.insert(
            0, {"code": code, "description": "error", "details": details, "is_error": True, "time": "now"}
        )
        self.nice = code, details

    def move(self) -> None:
        """Copy all there is; what cannot be read is skipped where that is asked for."""
        for item in self.items:
            if self.cancelled.is_set():
                return
            self.move_one(item)
        self.end()

    def move_one(self, item: Mapping[str, str]) -> None:
        source = self.roots[0] / item["source_path"].lstrip("/")
        target = self.roots[1] / item["destination_path"].lstrip("/")
        if not source.is_file():
            assert self.data["skip_source_errors"]
            self.skipped.append((item["source_path"], "FILE_NOT_FOUND"))
            return
        level = self.data.get("sync_level")
        is_same = target.exists() and (
            level == EXISTENCE or (level == CHECKSUM and target.read_bytes() == source.read_bytes())
        )
        if is_same:
            self.same += 1
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if self.data.get("preserve_timestamp"):
            seconds = int(source.stat().st_mtime)
            os.utime(target, (seconds, seconds))
        self.moved.append(item)
        self.moved_bytes += source.stat().st_size

    def end(self) -> None:
        self.ended_s = time.time()
        self.nice, self.status = ("OK", ""), "SUCCEEDED"

    def fail(self, code: str, text: str) -> None:
        self.ended_s = time.time()
        self.fatal, self.status = (code, text), "FAILED"

    def cancel(self) -> None:
        self.cancelled.set()
        if self.status in ("ACTIVE", "INACTIVE"):
            self.fail("CANCELED", "canceled by its owner")

    def document(self) -> dict[str, Any]:
        code, text = self.fatal
        return {
            "DATA_TYPE": "task",
            "task_id": self.task_id,
            "type": "TRANSFER",
            "status": self.status,
            "label": self.data.get("label"),
            "files": len(self.items),
            "files_transferred": len(self.moved),
            "files_skipped": self.same,
            "bytes_transferred": self.moved_bytes,
            "faults": len(self.events),
            "is_paused": self.is_paused,
            "nice_status": self.nice[0],
            "nice_status_details": self.nice[1],
            "fatal_error": {"code": code, "description": text} if code else None,
            "deadline": "2026-12-01T00:00:00+00:00",
            "request_time": told(self.asked_s),
            "completion_time": told(self.ended_s),
            "subtasks_succeeded": len(self.moved) + self.same,
            "subtasks_expired": self.expired,
            "subtasks_skipped_errors": len(self.skipped),
        }


def told(time_s: float | None) -> str | None:
    return None if time_s is None else f"{datetime.fromtimestamp(int(time_s), UTC):%Y-%m-%dT%H:%M:%S}+00:00"
