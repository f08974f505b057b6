"""Running the command `mpx` as a user does: a process of its own, what it prints, how it ends."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import forked_mpx

# Another account could not reach an interpreter below /root; root without these is stopped as anybody is.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
FORKED = (("copy",), ("list",), ("probe",), ("unfinished",), ("controller",))
WITHIN_S = 240  # a command that takes longer hangs


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def command(*words: object) -> list[str | bytes]:
    return [sys.executable, "-m", "mpx", *encoded(words)]


def encoded(words: tuple[object, ...]) -> list[bytes]:
    return [word if isinstance(word, bytes) else os.fsencode(str(word)) for word in words]


def mpx(
    *words: object,
    stdin: bytes = b"",
    folder: Path | None = None,
    ordinary: bool = False,
    environment: dict[str, str] | None = None,
) -> Ended:
    """Run mpx to its end; `ordinary`: whom permissions stop, also where tests run as root.

    Commands for files and controllers are forked (forked_mpx.py), those that need a start of their own not.
    """
    everything = {**os.environ, **(environment or {})}
    if words[:1] in FORKED and not environment and not (ordinary and os.geteuid() == 0):
        told = forked_mpx.run(encoded(words), stdin, str(folder or Path.cwd()), everything, WITHIN_S)
        return Ended(told[0], _text(told[1]), _text(told[2]))
    done = subprocess.run(
        [*(AS_ANYBODY if ordinary and os.geteuid() == 0 else []), *command(*words)],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env=everything,
        timeout=WITHIN_S,
        check=False,
    )
    return Ended(done.returncode, _text(done.stdout), _text(done.stderr))


@contextmanager
def running(*words: object, patient: bool = False) -> Iterator[forked_mpx.Forked]:
    """A run of mpx on its way; killed if it still is at the end.

    `patient`: it may take its time after a signal, as a busy machine needs more than users are to wait.
    """
    environment = {**os.environ, **({forked_mpx.PATIENT: "1"} if patient else {})}
    with forked_mpx.Forked(encoded(words), environment=environment, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def refused(ended: Ended, code: int, *words: str) -> None:
    """Assert that a command failed as it should: this exit code, one line that holds these words.

    Before it there may be a line for each file of several that was not copied.
    """
    assert ended.code == code, (ended.code, ended.err, ended.out)
    *files, line = ended.err.splitlines()
    assert all(file.startswith("mpx: not copied ") for file in files), ended.err
    assert line.startswith("mpx: "), ended.err
    assert ended.err.endswith("\n")
    assert len(line) > 20, ended.err
    assert "Traceback" not in ended.err
    for word in words:
        assert word in line, (word, ended.err)


def copied(ended: Ended) -> None:
    """Assert that a command did all it should, without a word on stderr."""
    assert (ended.code, ended.err) == (0, ""), (ended.code, ended.err, ended.out)
