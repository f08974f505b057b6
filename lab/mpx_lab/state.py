"""The files of labs below /run/mpx-lab: a folder and a lock for each, by the lab's ID.

A lab whose folder holds `state.json` is complete; that file is written last and removed first. Whatever
else of a lab is found while nobody holds its lock is remains of one that was interrupted.
"""

import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mpx.errors import MpxError, UsageError
from mpx_lab import namespace
from mpx_lab.steps import Controller
from mpx_lab.topology import Link, Topology

LABS = Path("/run/mpx-lab")
LAB_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,15}")
DEFAULT_ID = "default"
PATIENCE_S = 2.0


class LabError(MpxError):
    """A lab is not in the state that was expected, or a part of it failed."""


class CannotRun(MpxError):
    """A command was not found or cannot be executed, named by `what`; exit codes as of a shell."""

    def __init__(self, what: str, error: OSError) -> None:
        super().__init__(f"{what}: {error.strerror}")
        missing = isinstance(error, FileNotFoundError)
        self.exit_code = namespace.NOT_FOUND if missing else namespace.NOT_EXECUTABLE


@dataclass(frozen=True)
class Owner:
    """A process, for example the program that holds a lab: when it has ended, the lab is remains."""

    pid: int
    started: int  # clock ticks after boot, so that a later process with that number is another

    @classmethod
    def this_process(cls) -> "Owner":
        """Return the calling process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> "Owner":
        """Return the process that has this number now; raises OSError where there is none."""
        return cls(pid, _started(pid))

    def lives(self) -> bool:
        """Whether it still runs."""
        try:
            return _started(self.pid) == self.started
        except OSError:
            return False


@dataclass(frozen=True)
class State:
    """A complete lab."""

    lab_id: str
    topology: Topology
    controller: Controller | None = None
    owner: Owner | None = None  # None: it stays until it is taken down
    # Distinguishes it from later labs of its ID.
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "State":
        """Return what `to_json` wrote."""
        stored = json.loads(text)
        topology = stored["topology"]
        names = {key: tuple(topology[key]) for key in ("sources", "sinks", "switches")}
        links = tuple(Link(**link) for link in topology["links"])
        return cls(
            lab_id=stored["lab_id"],
            topology=Topology(**{**topology, **names, "links": links}),
            controller=stored["controller"] and Controller(**stored["controller"]),
            owner=stored["owner"] and Owner(**stored["owner"]),
            token=stored["token"],
        )


def check_id(lab_id: str) -> str:
    """Return `lab_id`; raises UsageError unless it can be one."""
    if not LAB_ID.fullmatch(lab_id):
        raise UsageError(f"'{lab_id}' is not the ID of a lab: write 1 to 16 of a-z, 0-9 and -")
    return lab_id


def folder_of(lab_id: str) -> Path:
    """Return the folder of a lab."""
    return LABS / lab_id


def environment(lab_id: str) -> dict[str, str]:
    """Return the environment of every process that a lab starts; cleaning up finds them by it."""
    return {**os.environ, "MPX_LAB": lab_id}


def load(lab_id: str) -> State | None:
    """Return a complete lab whose owner, if any, still runs, or None; raises LabError if it is unreadable."""
    try:
        state = State.from_json((folder_of(lab_id) / "state.json").read_text())
    except FileNotFoundError:
        return None
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
        UsageError,
    ) as error:
        raise LabError(
            f"the state of the lab '{lab_id}' cannot be read ({error}); if another mpx made it, "
            f"take it down with 'mpx lab down --lab {lab_id}'"
        ) from None
    return None if state.owner and not state.owner.lives() else state


def is_complete(lab_id: str) -> bool:
    """Whether a lab was built to its end and not taken down since, whoever made it."""
    return (folder_of(lab_id) / "state.json").exists()


def save(state: State) -> None:
    """Mark a lab as complete."""
    folder = folder_of(state.lab_id)
    (folder / "state.new").touch(0o600)
    (folder / "state.new").write_text(state.to_json())
    (folder / "state.new").rename(folder / "state.json")


def lab_ids() -> list[str]:
    """Return the IDs of all labs, complete or not, that have a folder or a lock."""
    return sorted({path.name.removesuffix(".lock") for path in LABS.glob("*")} if LABS.is_dir() else ())


@contextmanager
def locked(lab_id: str, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a lab; raises LabError without `wait` while another process builds or removes it.

    A process that is killed while it starts a program leaves a copy of itself, which holds the lock for the
    milliseconds until it has become that program. So also without `wait` PATIENCE_S have to pass.
    """
    LABS.mkdir(exist_ok=True)  # it stays, or another process could lock a new file of that name
    LABS.chmod(0o755)
    path = LABS / f"{lab_id}.lock"
    fd = _lock(path, wait, lab_id)
    try:
        yield
    finally:
        if not folder_of(lab_id).exists():  # the lock is a file of the lab too
            path.unlink()
        os.close(fd)


def _lock(path: Path, wait: bool, lab_id: str) -> int:
    last_s = time.monotonic() + PATIENCE_S
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(fd)
            if time.monotonic() < last_s:
                time.sleep(0.01)
                continue
            raise LabError(
                f"the lab '{lab_id}' is being built or taken down by another process; try again afterwards"
            ) from None
        try:
            if os.stat(path).st_ino == os.fstat(fd).st_ino:
                return fd
        except FileNotFoundError:
            pass
        os.close(fd)  # its holder has removed the file, so this lock is void


def _started(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(pid)
    return int(fields[19])
