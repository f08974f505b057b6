"""Logins at XRootD by its own protocol: proxies (gsi), with a role of a VO (VOMS), shared secrets (sss).

For tokens (ztn) see test_root_tokens.py.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from grids import shared_grid
from install_peers import find_peer, needs_library
from mpx_command import copied, refused
from mpx_lab.private_grid import PrivateGrid
from web.servers.private_network import private_network, within
from web.servers.root_server import RootServer, root_server
from web.servers.xrootd import ACCOUNT
from web.shared_servers import with_environment
from web.web_command import mpx_there

import mpx as api

USER = "alice"
VO = "lab"
CHECKED = """xrootd.seclib libXrdSec.so
ofs.authorize 1
acc.authdb {secrets}/authdb
"""
# Of keys XRootD takes RSA alone here, so the host shows another certificate than web servers do.
GSI = (
    "sec.protocol gsi -certdir:{secrets}/trusted -cert:{secrets}/host.pem -key:{secrets}/host.key "
    "-gridmap:{secrets}/gridmap -gmapopt:11 -crl:0 -dlgpxy:0 {vo}\n"
)


@pytest.fixture
def secrets() -> Iterator[Path]:
    """A folder of what a server reads, beside which it may be; the test is in a network of its own."""
    if os.geteuid() != 0:
        pytest.skip("a network of its own is made by root")
    find_peer("xrootd")
    with (
        tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as name,
        private_network() as namespace,
        within(namespace),
    ):
        root = Path(name)
        root.chmod(0o755)  # the server works as somebody else
        (root / "secrets").mkdir()
        yield root / "secrets"


@pytest.fixture
def grid(secrets: Path) -> PrivateGrid:
    """A grid, of which the server has what it needs."""
    grid = shared_grid()
    shutil.copytree(grid.trusted, secrets / "trusted")
    for name in ("host.pem", "host.key"):
        shutil.copy(grid.folder / name, secrets)
    (secrets / "gridmap").write_text(f'"{grid.user.name}" {USER}\n')
    return grid


def serving(
    secrets: Path, who: str, protocol: str, environment: dict[str, str]
) -> contextlib.AbstractContextManager[RootServer]:
    """A server that lets one in, who has a line of its database."""
    (secrets / "authdb").write_text(f"{who} / a\n")
    account = pwd.getpwnam(ACCOUNT)
    for path in (secrets, *secrets.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    more = f"{CHECKED}{protocol}".format(secrets=secrets, vo="-vomsat:0")
    return root_server(secrets.parent / "server", more, environment)


def both_ways(server: RootServer, here: Path, **environment: str) -> None:
    (here / "file").write_bytes(os.urandom(300_000))
    with with_environment(environment):
        api.copy(str(here / "file"), f"{server.url}file")
        assert (server.folder / "file").read_bytes() == (here / "file").read_bytes()
        api.copy(f"{server.url}file", str(here / "back"))
    assert (here / "back").read_bytes() == (here / "file").read_bytes()


def test_a_proxy(secrets: Path, grid: PrivateGrid, here: Path) -> None:
    trusted = {"X509_CERT_DIR": str(grid.trusted)}
    with serving(secrets, f"u {USER}", GSI, trusted) as server:
        both_ways(server, here, X509_USER_PROXY=str(grid.proxy), **trusted)
        nobody = mpx_there("list", server.url, X509_USER_PROXY=str(here / "none"), **trusted)
        refused(nobody, 5, "accepts none of the credentials", "X509_USER_PROXY")
        named = mpx_there("list", "--cert", str(grid.proxy), "--ca", str(grid.trusted), server.url)
        copied(named)


def test_a_role_of_a_vo(secrets: Path, grid: PrivateGrid, here: Path) -> None:
    """The server sees no name of the user in its database, but the VO that the proxy tells."""
    needs_library("libXrdHttpVOMS-5.so")
    known = secrets / "vomsdir" / VO
    known.mkdir(parents=True)
    (known / "localhost.lsc").write_text(f"{grid.host.name}\n{grid.ca.name}\n")
    made = here / "voms.pem"
    words = [find_peer("voms-proxy-fake"), "-rfc", "-cert", str(grid.folder / "user.pem")]
    words += ["-key", str(grid.folder / "user.key"), "-hostcert", str(grid.folder / "host.pem")]
    words += ["-hostkey", str(grid.folder / "host.key"), "-voms", VO, "-uri", "localhost:15000"]
    words += ["-fqan", f"/{VO}/Role=production/Capability=NULL", "-out", str(made)]
    trusted = {"X509_CERT_DIR": str(grid.trusted)}
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **trusted})
    protocol = GSI.replace("{vo}", "-vomsat:1 -vomsfun:default")
    environment = {**trusted, "X509_VOMS_DIR": str(secrets / "vomsdir")}
    with serving(secrets, f"o {VO}", protocol, environment) as server:
        both_ways(server, here, X509_USER_PROXY=str(made), **trusted)
        (here / "other").write_bytes(b"1")
        plain = {**trusted, "X509_USER_PROXY": str(grid.proxy)}
        refused(mpx_there("copy", here / "other", f"{server.url}other", **plain), 4, "permission denied")


def test_a_shared_secret(secrets: Path, here: Path) -> None:
    keys, ours = secrets / "keys", here / "keys"
    words = [find_peer("xrdsssadmin"), "-k", VO, "-u", USER, "-g", "anygroup", "add", str(keys)]
    subprocess.run(words, check=True, capture_output=True)
    shutil.copy(keys, ours)
    with serving(secrets, f"u {USER}", "sec.protocol sss -s {secrets}/keys\n", {}) as server:
        both_ways(server, here, XrdSecSSSKT=str(ours))
        nobody = mpx_there("list", server.url, XrdSecSSSKT=str(here / "none"))
        refused(nobody, 5, "accepts none of the credentials")
