"""`make demo-web` does what it says, and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from install_peers import find_peer


def test_it_shows_what_it_says(tmp_path: Path) -> None:
    find_peer("xrootd")
    done = subprocess.run(
        [sys.executable, "-m", "mpx_lab.demo_web"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in ("of it by an earlier run", "copied 50 of 50 files", "verified (md5)", "all are the same"):
        assert said in done.stdout
    assert ("with a macaroon" in done.stdout) != ("left out" in done.stdout)
    assert ("left out" not in done.stdout) or os.geteuid() != 0
    assert list(tmp_path.iterdir()) == []


def test_without_xrootd_it_says_so(tmp_path: Path) -> None:
    """As found by its program alone."""
    for name in ("env", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    done = subprocess.run(
        [sys.executable, "-c", "from mpx_lab.demo_web import straight; raise SystemExit(not straight())"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "left out: there is no xrootd here" in done.stdout


def test_it_uses_no_site_of_the_user(tmp_path: Path) -> None:
    """As the AWS tools are told of elsewhere, nor a proxy."""
    elsewhere = {"AWS_PROFILE": "none", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_SESSION_TOKEN": "x"}
    words = "from mpx_lab.demo_web import *; import sys; forget_other_sites(); "
    done = subprocess.run(
        [sys.executable, "-c", f"{words} raise SystemExit(not up_and_down(Path(sys.argv[1])))", tmp_path],
        env={**os.environ, **elsewhere, "http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
