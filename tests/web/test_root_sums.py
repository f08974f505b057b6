"""Checksums by XRootD's own protocol, of servers that compute them with a program."""

import os
import tempfile
from pathlib import Path

import pytest
from web.servers.private_network import within
from web.servers.xrootd import xrootd_site

import mpx as api


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
