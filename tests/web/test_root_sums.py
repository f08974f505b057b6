"""Checksums by XRootD's own protocol, of servers that compute them with a program."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import refused
from web.servers.private_network import within
from web.servers.xrootd import XrootdSite, xrootd_site
from web.web_command import mpx_there

import mpx as api


@pytest.fixture
def wrong_server() -> Iterator[XrootdSite]:
    """One that tells a checksum of nothing that it has; the test is in its network."""
    with tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o755)  # the server works as somebody else
        (root / "served").mkdir()
        (root / "wrong").write_text("echo 01020304\n")
        program = f"max 1 adler32 /bin/sh {root}/wrong"
        with xrootd_site(root / "served", checksums=program) as server, within(server.namespace):
            yield server


def test_a_wrong_checksum(monkeypatch: pytest.MonkeyPatch, here: Path, wrong_server: XrootdSite) -> None:
    """Nothing takes the place of what is there, at either end."""
    monkeypatch.setenv("BEARER_TOKEN", wrong_server.issuer.token())
    monkeypatch.setenv("X509_CERT_DIR", str(wrong_server.trusted))
    for folder in (here, wrong_server.folder):
        (folder / "new").write_bytes(os.urandom(300_000))
        (folder / "old").write_bytes(b"as before")
    url = wrong_server.root_url
    for ends in ((here / "new", f"{url}old"), (f"{url}new", here / "old")):
        ended = mpx_there("copy", "--overwrite", "always", *ends)
        refused(ended, 8, "another adler32", "--checksum")
    for folder in (here, wrong_server.folder):
        assert (folder / "old").read_bytes() == b"as before"
    ended = mpx_there("copy", "--checksum", "none", here / "new", f"{url}unverified")
    assert ended.code == 0
    assert (wrong_server.folder / "unverified").read_bytes() == (here / "new").read_bytes()


def test_one_that_takes_longer_than_the_time_out(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    """A file may be read from a tape for it."""
    (here / "file").write_bytes(os.urandom(300_000))
    with tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o755)  # the server works as somebody else
        (root / "served").mkdir()
        (root / "slow").write_text('sleep 5; xrdadler32 < "$1$3" | cut -d " " -f 1\n')
        program = f"max 1 adler32 md5 /bin/sh {root}/slow {root}/served"
        with xrootd_site(root / "served", checksums=program) as server, within(server.namespace):
            monkeypatch.setenv("BEARER_TOKEN", server.issuer.token())
            monkeypatch.setenv("X509_CERT_DIR", str(server.trusted))
            monkeypatch.setenv("XRD_TIMEOUTRESOLUTION", "1")  # of the library, in seconds
            options = api.CopyOptions(timeout_s=2.0, checksum="adler32", retries=0)
            report = api.copy(str(here / "file"), f"{server.root_url}file", options)
    assert report.checksum["result"] == "verified"
