"""What tests of copies over ssh have in common, whatever serves at its other end."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interop import bent_sftp
from interop.sshd import HOST
from mpx_command import mpx, running

SFTP_SERVER = "/usr/lib/openssh/sftp-server"


# An ssh that has logged in, at whose other end there is SFTP and nothing else.
SSH = """#!/bin/sh
case "$1" in
-s) exec {python} {bent} {how} {program} ;;
*) exit 1 ;;
esac
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str, program: Path) -> None:
    """Have such an ssh, and an SFTP server whose answers are bent; see bent_sftp."""
    (folder / "bin").mkdir()
    ssh = folder / "bin" / "ssh"
    bent = Path(bent_sftp.__file__)
    ssh.write_text(SSH.format(python=sys.executable, bent=bent, how=how, program=program))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")


def copied(*words: object) -> str:
    done = mpx("copy", *words)
    assert done.code == 0, done.err
    return done.out


def refused(code: int, *words: object) -> str:
    done = mpx("copy", *words)
    assert done.code == code, (done.code, done.out, done.err)
    assert len(done.err.strip().splitlines()) == 1, done.err
    return done.err


def kill_halfway(ends: tuple[object, object], folder: Path, eventually: Callable[..., None]) -> None:
    """Kill a copy of 24 MiB once some MiB are in a partial file in a folder, where `new` is to come."""
    with running("copy", *ends, "--rate", "20Mbit/s") as copy:
        eventually(lambda: sum(each.stat().st_blocks for each in folder.glob(".new*.part")) > 4000)
        copy.kill()
        copy.wait(240)
    assert not (folder / "new").exists()


def there(path: Path) -> str:
    return f"{HOST}:{path}"


def contents(folder: Path) -> dict[bytes, bytes]:
    top = os.fsencode(folder)
    return {
        os.path.relpath(os.path.join(where, name), top): Path(
            os.fsdecode(os.path.join(where, name))
        ).read_bytes()
        for where, _, names in os.walk(top)
        for name in names
    }


def lanes_of(process: int) -> list[int]:
    """The processes of ssh that move the data of a copy."""
    told = subprocess.run(
        ["ps", "--ppid", str(process), "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=False
    )
    return [int(line.split()[0]) for line in told.stdout.splitlines() if line.endswith(" sftp")]
