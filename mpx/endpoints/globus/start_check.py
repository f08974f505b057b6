"""Which files one task may be given: under `--overwrite never` what has their names is looked at before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpx.endpoints.globus.arrival_check import ArrivalCheck
from mpx.endpoints.globus.left_behind import LeftBehind, Whose
from mpx.endpoints.globus.tasks import GlobusTasks
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry
from mpx.errors import IsThere, LeftInDoubt, MpxError


@dataclass(frozen=True, slots=True)
class Start:
    """What becomes of files that are to be copied."""

    files: list[FileTransfer]  # for one task
    later: Sequence[FileTransfer] = ()  # for another one
    refused: Mapping[FileTransfer, MpxError] = field(default_factory=dict)
    is_ours: bool = False  # what has the names of `files` has been left by tasks of this copy


class StartCheck:
    """For one thread."""

    def __init__(self, tasks: GlobusTasks, arrivals: ArrivalCheck, left: LeftBehind) -> None:
        self._tasks, self._arrivals, self._left = tasks, arrivals, left

    def of(self, files: list[FileTransfer], retry: Retry) -> Start:
        """Decide about files; those of which something of ours is there have a task of their own."""
        if self._tasks.replaces:
            return Start(files)
        self._left.asked([file.final for file in files])
        in_doubt = [file for file in files if file.was_begun or self._left.has(file.final)]
        if not in_doubt:
            return Start(files)
        ours, refused, missing = list[FileTransfer](), dict[FileTransfer, MpxError](), list[str]()
        for file, there in zip(in_doubt, self._arrivals.there(in_doubt, retry), strict=True):
            if there is None:
                missing.append(file.final)
            elif (error := self._why_kept(file, there, retry)) is None:
                ours.append(file)
            else:
                refused[file] = error
        self._left.nothing_there(missing)
        rest = [file for file in files if file not in refused]
        if not ours:
            return Start(rest, refused=refused)
        return Start(ours, [file for file in rest if file not in ours], refused, is_ours=True)

    def _why_kept(self, file: FileTransfer, there: FileInfo | MpxError, retry: Retry) -> MpxError | None:
        """Return why what is there is not replaced; None where tasks of this copy have left it."""
        if isinstance(there, MpxError):
            return there
        whose = self._left.whose(file.final, there, lambda task_id: self._tasks.copied(task_id, retry))
        if whose is Whose.OTHERS:
            self._left.settled([file.final])
            return IsThere(file.final)
        return LeftInDoubt(file.final) if whose is Whose.UNKNOWN else None
