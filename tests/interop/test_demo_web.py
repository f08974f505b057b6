"""`make demo-web` does what it says, and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from install_peers import find_peer


def ran(*words: object, timeout_s: float, **environment: str) -> str:
    """Run a part of the demo in an environment of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_shows_what_it_says(tmp_path: Path) -> None:
    find_peer("xrootd")
    printed = ran("-m", "mpx_lab.demo_web", timeout_s=240, TMPDIR=str(tmp_path))
    for said in ("of it by an earlier run", "copied 50 of 50 files", "verified (md5)", "all are the same"):
        assert said in printed
    assert ("with a macaroon" in printed) != ("left out" in printed)
    assert ("left out" not in printed) or os.geteuid() != 0
    assert list(tmp_path.iterdir()) == []


def test_without_xrootd_it_says_so(tmp_path: Path) -> None:
    """As found by its program alone."""
    for name in ("env", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    words = "from mpx_lab.demo_web import straight; raise SystemExit(not straight())"
    assert "left out: there is no xrootd here" in ran("-c", words, timeout_s=60, PATH=str(tmp_path))


def test_it_uses_no_site_of_the_user(tmp_path: Path) -> None:
    """As the AWS tools are told of elsewhere, nor a proxy."""
    elsewhere = {"AWS_PROFILE": "none", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_SESSION_TOKEN": "x"}
    words = (
        "from mpx_lab.demo_web import *; import sys; forget_other_sites(); "
        "raise SystemExit(not up_and_down(Path(sys.argv[1])))"
    )
    ran("-c", words, tmp_path, timeout_s=120, http_proxy="http://127.0.0.1:9", **elsewhere)
