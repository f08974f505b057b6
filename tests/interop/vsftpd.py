"""vsftpd as a fixture: a plain FTP server without MODE E, MLST and CKSM."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

STARTED_WITHIN_S = 30


@pytest.fixture
def vsftpd(tmp_path: Path, peer) -> Iterator[tuple[str, Path]]:
    """A plain FTP server: no MODE E, no MLST, no CKSM. Needs root to serve anonymously."""
    with serving(tmp_path, peer("vsftpd")) as served:
        yield served


@contextlib.contextmanager
def serving(tmp_path: Path, program: str, **more: str | int) -> Iterator[tuple[str, Path]]:
    """As the fixture, with `more` settings."""
    if os.geteuid() != 0:
        pytest.skip("vsftpd serves anonymous users only when started by root")
    root, empty = tmp_path / "ftp", tmp_path / "empty"
    (root / "pub").mkdir(parents=True)
    empty.mkdir()
    (root / "pub").chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "listen": "YES", "listen_address": "127.0.0.1", "listen_port": port, "background": "NO",
        "anonymous_enable": "YES", "local_enable": "NO", "no_anon_password": "YES", "anon_root": root,
        "write_enable": "YES", "anon_upload_enable": "YES", "anon_mkdir_write_enable": "YES",
        "anon_other_write_enable": "YES", "anon_umask": "022", "seccomp_sandbox": "NO",
        "secure_chroot_dir": empty, **more,
    }  # fmt: skip
    configuration = tmp_path / "vsftpd.conf"
    configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    process = subprocess.Popen([program, str(configuration)])
    try:
        deadline_s = time.monotonic() + STARTED_WITHIN_S
        while not _listens(port):
            assert process.poll() is None, "vsftpd has ended at once"
            assert time.monotonic() < deadline_s, "vsftpd does not listen"
            time.sleep(0.02)
        yield f"ftp://127.0.0.1:{port}/pub", root / "pub"
    finally:
        process.kill()
        process.wait()


def session_pids(pub: Path) -> list[int]:
    """The processes of the server of this folder that serve a client each."""
    configuration = os.fsencode(pub.parent.parent / "vsftpd.conf")
    found: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if configuration in (folder / "cmdline").read_bytes().split(b"\0"):
                    # The name in parentheses may hold anything, so look behind the last one.
                    parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
                    found[int(folder.name)] = int(parent)
    return [pid for pid, parent in found.items() if parent in found]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
