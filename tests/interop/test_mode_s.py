"""MODE S: servers without MODE E, and clients that no server can connect to."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpx

TESTS = Path(__file__).resolve().parent.parent


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
