"""MODE S: servers without MODE E, and clients that no server can connect to."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpx

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture
def vsftpd(tmp_path: Path, peer, eventually) -> Iterator[tuple[str, Path]]:
    """A plain FTP server: no MODE E, no MLST, no CKSM. Needs root to serve anonymously."""
    program = peer("vsftpd")
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
        "secure_chroot_dir": empty,
    }  # fmt: skip
    configuration = tmp_path / "vsftpd.conf"
    configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    process = subprocess.Popen([program, str(configuration)])
    try:
        eventually(lambda: _listens(port))
        yield f"ftp://127.0.0.1:{port}/pub", root / "pub"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.peers
@pytest.mark.parametrize("size", [0, 1, 5 * 1024 * 1024 + 3, 80 * 1024 * 1024 + 1])
def test_vsftpd_both_ways(vsftpd, tmp_path, size):
    url, served = vsftpd
    source = tmp_path / "source"
    source.write_bytes(os.urandom(size))
    up = mpx.copy(str(source), f"{url}/a file")
    assert (served / "a file").read_bytes() == source.read_bytes()
    down = mpx.copy(f"{url}/a file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    for report in (up, down):
        assert report.checksum["result"] == "unverified"
        assert any("MODE S" in note for note in report.notes)
    assert not list(served.glob(".*part"))


@pytest.mark.peers
def test_what_vsftpd_cannot_do_is_refused_when_asked_for(vsftpd, tmp_path):
    url, served = vsftpd
    (tmp_path / "source").write_bytes(b"x")
    with pytest.raises(mpx.UsageError, match="CKSM"):
        mpx.copy(str(tmp_path / "source"), f"{url}/x", mpx.CopyOptions(checksum="md5"))
    assert not list(served.iterdir())


@pytest.mark.peers
def test_a_client_behind_a_firewall_still_downloads(tmp_path, peer):
    peer("globus-gridftp-server")
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    served = tmp_path / "served"
    served.mkdir()
    (served / "source").write_bytes(os.urandom(20_000_000))
    (served / "source").chmod(0o644)
    script = [sys.executable, str(TESTS / "interop" / "blocked_inbound.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        ["unshare", "-n", *script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert any("MODE S" in note for note in report["notes"])
    assert report["checksum"]["result"] == "verified"
    assert (tmp_path / "target").read_bytes() == (served / "source").read_bytes()
