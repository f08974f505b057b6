"""Copies over SFTP where a login needs somebody who types: once, and no login fails that nobody asked for."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from interop.ssh_copies import contents, copied, there
from interop.sshd import PrivateSshd, private_sshd
from interop.test_sftp_between import served
from mpx_command import running
from sites import make

MIB = 1024 * 1024
PASSPHRASE = "open sesame"
FAILED = ("Connection closed by authenticating user", "Failed ", "Connection reset by authenticating user")


class Typist:
    """Types the passphrase of the user's key whenever ssh asks for it, and counts how often."""

    def __init__(self, sshd: PrivateSshd, folder: Path) -> None:
        key = str(sshd.folder / "user")
        subprocess.run(["ssh-keygen", "-q", "-p", "-f", key, "-P", "", "-N", PASSPHRASE], check=True)
        self._sshd, self._log = sshd, folder / "asked"
        self._log.touch()
        self.program = folder / "askpass"
        self.program.write_text(f"#!/bin/sh\necho once >>{self._log}\necho '{PASSPHRASE}'\n")
        self.program.chmod(0o755)

    @property
    def times(self) -> int:
        return len(self._log.read_text().splitlines())

    @property
    def failed_logins(self) -> list[str]:
        log = self._sshd.log.read_text()
        return [line for line in log.splitlines() if line.startswith(FAILED)]


@pytest.fixture
def typed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[tuple[PrivateSshd, Typist]]]:
    @contextmanager
    def begin(*settings: str) -> Iterator[tuple[PrivateSshd, Typist]]:
        with private_sshd(*settings) as sshd:
            typist = Typist(sshd, tmp_path_factory.mktemp("typist"))
            monkeypatch.setenv("SSH_ASKPASS", str(typist.program))
            monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
            yield sshd, typist

    return begin


Typed = Callable[..., AbstractContextManager[tuple[PrivateSshd, Typist]]]


@pytest.mark.parametrize(("most", "way"), [(1, "up"), (1, "down"), (2, "up")])
def test_one_passphrase_is_enough(typed: Typed, tmp_path: Path, way: str, most: int) -> None:
    """Whatever few sessions its connection takes: listing, moving, verifying and checksums take turns."""
    for number in range(20):
        make(tmp_path / "tree" / f"file {number}", 1000 * number)
    make(tmp_path / "tree" / "large", 3 * MIB)
    ends = (tmp_path / "tree", there(tmp_path / "new"))
    if way == "down":
        ends = (there(tmp_path / "tree"), tmp_path / "new")
    with typed(f"MaxSessions {most}") as (sshd, typist):
        copied("-r", *ends, "--report", tmp_path / "report.json")
        assert contents(tmp_path / "new") == contents(tmp_path / "tree")
        told = json.loads((tmp_path / "report.json").read_text())
        assert told["checksum"]["result"] == "verified"
        assert (typist.times, typist.failed_logins) == (1, [])
        assert sshd.log.read_text().count("Accepted publickey") == 1


def test_a_connection_that_is_lost_is_told_and_the_same_command_goes_on(
    typed: Typed, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    """Nobody is asked for a second time, and no login is tried that somebody would have to type for."""
    source = make(tmp_path / "source", 5 * MIB)
    words = ("copy", source, there(tmp_path / "new"))
    with typed() as (sshd, typist):
        with running(*words, "--rate", "10Mbit/s", "--streams", "3") as copy:
            eventually(lambda: any(part.stat().st_blocks for part in tmp_path.glob(".new*.part")))
            for session in sshd.sessions():
                os.kill(session, signal.SIGKILL)
            said = copy.communicate(240)[1].decode()
            assert copy.returncode == 6, said
        *_, line = said.splitlines()
        assert "the connection to" in line and "is lost" in line and "to continue" in line, said
        assert not (tmp_path / "new").exists()
        assert (typist.times, typist.failed_logins) == (1, [])
        copied(*words[1:], "--report", tmp_path / "report.json")
        assert (tmp_path / "new").read_bytes() == source.read_bytes()
        assert json.loads((tmp_path / "report.json").read_text())["bytes"]["resumed"] > 0
        assert (typist.times, typist.failed_logins) == (2, [])


@pytest.mark.parametrize("kinds", [("sftp", "mpx"), ("mpx", "sftp")], ids="-".join)
def test_a_connection_for_which_somebody_would_have_to_type_is_not_made_anew(
    typed: Typed, tmp_path: Path, eventually: Callable[..., None], kinds: tuple[str, str]
) -> None:
    """Between two servers it ends as between a server and this host, and the same command goes on."""
    folders = tmp_path / "from", tmp_path / "to"
    for folder in folders:
        folder.mkdir()
    source = make(folders[0] / "file", 5 * MIB)
    with typed() as (sshd, typist), ExitStack() as stack:
        ends = [
            stack.enter_context(served(kind, folder)) + "file"
            for kind, folder in zip(kinds, folders, strict=True)
        ]
        with running("copy", *ends, "--rate", "10Mbit/s", "--streams", "2") as copy:
            eventually(lambda: any(part.stat().st_blocks for part in folders[1].glob(".file*.part")))
            for session in sshd.sessions():
                os.kill(session, signal.SIGKILL)
            told = copy.communicate(240)[1].decode()
            assert copy.returncode == 6, told
        assert "is lost, and to log in again somebody would have to type" in told.splitlines()[-1]
        assert not (folders[1] / "file").exists()
        assert (typist.times, typist.failed_logins) == (1, [])
        copied(*ends)
        assert (folders[1] / "file").read_bytes() == source.read_bytes()
        assert (typist.times, typist.failed_logins) == (2, [])
