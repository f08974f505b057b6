"""Web servers on loopback for a demo: WsgiDAV in TLS, moto for S3, and XRootD where it is installed."""

import base64
import contextlib
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpx.errors import UsageError
from mpx_lab.private_grid import PrivateGrid

START_S, LOOK_S = 30.0, 0.02
S3_KEYS = {
    "AWS_ACCESS_KEY_ID": "demo",
    "AWS_SECRET_ACCESS_KEY": "demo",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
XROOTD_PACKAGES = "xrootd-server, xrootd-server-plugins, xrootd-plugins"
XROOTD = "xrootd"  # the program, and the account of its package: it refuses to run as root


@contextlib.contextmanager
def webdav(folder: Path, grid: PrivateGrid) -> Iterator[int]:
    """A WebDAV server in TLS, of a folder; yields its port."""
    port = _free_port()
    settings = {
        "host": "127.0.0.1",
        "port": port,
        "server": "cheroot",
        "provider_mapping": {"/": str(folder)},
        "simple_dc": {"user_mapping": {"*": True}},
        "ssl_certificate": str(grid.folder / "host.pem"),
        "ssl_private_key": str(grid.folder / "host.key"),
        "verbose": 1,
    }
    configuration = folder.parent / "wsgidav.json"
    configuration.write_text(json.dumps(settings))
    command = [sys.executable, "-W", "ignore", "-m", "wsgidav.server.server_cli", "-c", str(configuration)]
    with _running(command, port, folder.parent / "wsgidav.log"):
        yield port


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[int]:
    """moto, which keeps what it is given in memory; yields its port."""
    port = _free_port()
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, port, folder / "moto.log"):
        yield port


def make_bucket(name: str, port: int) -> None:
    """Make a bucket at a server of S3 on loopback."""
    import botocore.session

    keys = {"aws_access_key_id": "demo", "aws_secret_access_key": "demo"}
    client = botocore.session.Session().create_client(
        "s3", "us-east-1", endpoint_url=f"http://localhost:{port}", **keys
    )
    client.create_bucket(Bucket=name)


@contextlib.contextmanager
def xrootd(folder: Path, grid: PrivateGrid) -> Iterator[int]:
    """XRootD with WebDAV and third-party copies for who has a proxy of the grid; yields its port.

    It listens on all addresses, so it is to run in a network of its own. `folder` is its own, with what it
    serves in `data`.
    """
    port = _free_port()
    for name in ("admin", "run", "data"):
        (folder / name).mkdir(exist_ok=True)
    shutil.copytree(grid.trusted, folder / "trusted")
    for name in ("host.pem", "host.key"):
        shutil.copy(grid.folder / name, folder)
    (folder / "gridmap").write_text(f'"{grid.user.name}" alice\n')
    (folder / "authdb").write_text("u alice / a\n")
    (folder / "macaroons.key").write_bytes(base64.encodebytes(secrets.token_bytes(64)))
    (folder / "macaroons.key").chmod(0o600)
    (folder / "xrootd.cfg").write_text(_XROOTD.format(d=folder, port=port))
    command = [XROOTD, "-c", str(folder / "xrootd.cfg")]
    if os.geteuid() == 0:
        account = pwd.getpwnam(XROOTD)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid)
        command = ["setpriv", f"--reuid={XROOTD}", f"--regid={XROOTD}", "--clear-groups", *command]
    with _running(command, port, folder.parent / f"{folder.name}.log"):
        yield port


_XROOTD = """all.export /
oss.localroot {d}/data
all.adminpath {d}/admin
all.pidpath {d}/run
all.sitename LAB
xrd.port {port}
xrd.protocol http:{port} libXrdHttp.so
xrd.tls {d}/host.pem {d}/host.key
xrd.tlsca certdir {d}/trusted
xrootd.chksum max 2 adler32 md5
http.cadir {d}/trusted
http.cert {d}/host.pem
http.key {d}/host.key
http.gridmap {d}/gridmap
http.header2cgi Authorization authz
http.exthandler xrdtpc libXrdHttpTPC.so
http.exthandler xrdmacaroons libXrdMacaroons.so
macaroons.secretkey {d}/macaroons.key
ofs.authorize 1
acc.authdb {d}/authdb
ofs.authlib ++ libXrdMacaroons.so
"""


@contextlib.contextmanager
def _running(command: Sequence[str], port: int, log: Path) -> Iterator[None]:
    """Run a server while in the `with` block, from when its port answers; raises UsageError."""
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said) as server,
    ):
        try:
            until_s = time.monotonic() + START_S
            while not _answers(port):
                if server.poll() is not None or time.monotonic() > until_s:
                    raise UsageError(f"{command[0]} does not start: {log.read_text()[-1000:].strip()}")
                time.sleep(LOOK_S)  # a port has no event for who will listen there
            yield
        finally:
            server.kill()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
