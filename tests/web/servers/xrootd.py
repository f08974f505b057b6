"""XRootD as sites of WLCG run it: https with tokens, macaroons, proxies, checksums and third-party copies.

Its own protocol, root://, is served at the same port.

It listens on all addresses, so it runs in a network of its own, which a test enters by `within`.
"""

import base64
import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from free_ports import free_ports
from install_peers import find_peer, needs_library
from interop.stock_server import open_to_everyone
from web.servers.host_certificate import HostCertificate, host_certificate
from web.servers.private_network import private_network, within
from web.servers.site import ServerProcess, WebSite
from web.servers.token_issuer import ANYWHERE, TokenIssuer, token_issuer

ACCOUNT = "xrootd"  # of Debian's package; it refuses to run as root
AS_ACCOUNT = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
USER = "alice"  # whom the holder of the user's certificate is taken for
SYSTEM_CAS = "/etc/ssl/certs/ca-certificates.crt"
# The library that checks tokens asks issuers through libcurl, which trusts this file whatever the environment
# says; so the server sees another in its place, and nobody else does.
WITH_OUR_CA = f'mount --bind "$0" {SYSTEM_CAS} && exec "$@"'
# Where XRootD 5.5 computes checksums itself and is asked by https, that of a small file may be there before
# it is noted that it is to come: two threads go on with that connection, its queue of jobs is damaged, and it
# accepts no further connection, or crashes. A program is never so fast.
SUM = """test -e "$1$3" || exit 2
case "$2" in
adler32) xrdadler32 < "$1$3" ;;
md5) md5sum < "$1$3" ;;
esac | cut -d " " -f 1
"""


@dataclass(kw_only=True)
class XrootdSite(WebSite):
    """Whoever connects must be in `namespace`; who has no token, macaroon or proxy is refused."""

    namespace: Path
    issuer: TokenIssuer
    proxy: Path  # of the user: who shows it may do everything
    trusted: Path  # folder of CAs, as the grid has them

    @property
    def root_url(self) -> str:
        """The same by XRootD's own protocol, in TLS: there a token lets in, and nothing else."""
        return f"roots://localhost:{self.port}//"

    def start(self) -> None:
        """As any other; from whichever network."""
        with within(self.namespace):
            super().start()


@contextlib.contextmanager
def xrootd_site(
    folder: Path, *, beside: XrootdSite | None = None, checksums: str | None = None, more: str = ""
) -> Iterator[XrootdSite]:
    """XRootD while in the `with` block, with a network and an issuer of its own or those of `beside`.

    `checksums`: that it computes itself, and keeps; empty: none; None: a program does, see SUM.
    `more`: lines of its configuration.
    """
    if os.geteuid() != 0:
        pytest.skip("a network of its own is made by root")
    program = find_peer("xrootd")
    needs_library("libXrdAccSciTokens-5.so")
    with contextlib.ExitStack() as held:
        namespace = beside.namespace if beside else held.enter_context(private_network())
        with within(namespace):
            issuer = beside.issuer if beside else held.enter_context(token_issuer())
            port = free_ports(1)[0]
        shown = host_certificate()
        state = _write_state(folder, port, shown, issuer, checksums, more)
        serve = [*AS_ACCOUNT, program, "-c", str(state / "xrootd.cfg")]
        server = ServerProcess(
            ["unshare", "-m", "sh", "-c", WITH_OUR_CA, str(state / "ca.pem"), *serve],
            state / "log",
            environment={**os.environ, "XDG_CACHE_HOME": str(state / "cache")},
            folder=state,
        )
        site = XrootdSite(
            folder,
            f"davs://localhost:{port}/",
            port,
            server,
            shown.ca,
            ACCOUNT,
            namespace=namespace,
            issuer=issuer,
            proxy=shown.grid.proxy,
            trusted=state / "trusted",
        )
        held.enter_context(site.running())
        yield site


def state_of(folder: Path) -> Path:
    """Where the server of a folder has its configuration and its logs."""
    return folder.parent / f"{folder.name}.xrootd"


def _write_state(
    folder: Path, port: int, shown: HostCertificate, issuer: TokenIssuer, checksums: str | None, more: str
) -> Path:
    """Write what the server reads into a folder beside that which it serves, and give both to its account."""
    state = state_of(folder)
    for name in ("admin", "run", "cache"):  # the last one is of the keys of issuers
        (state / name).mkdir(parents=True)
    shutil.copytree(shown.grid.trusted, state / "trusted")
    for file in (shown.ca, shown.certificate, shown.key):
        shutil.copy(file, state)
    (state / "gridmap").write_text(f'"{shown.grid.user.name}" {USER}\n')
    (state / "authdb").write_text(f"u {USER} / a\n")
    macaroons = state / "macaroons.key"
    macaroons.write_bytes(base64.encodebytes(secrets.token_bytes(64)))
    macaroons.chmod(0o600)
    (state / "sum").write_text(SUM)
    if checksums is None:
        checksums = f"max 2 adler32 md5 /bin/sh {state}/sum {folder}"
    (state / "scitokens.cfg").write_text(
        f"[Global]\naudience = https://localhost:{port}, {ANYWHERE}\n"
        f"[Issuer lab]\nissuer = {issuer.url}\nbase_path = /\ndefault_user = {ACCOUNT}\n"
    )
    (state / "xrootd.cfg").write_text(
        f"""all.export /
oss.localroot {folder}
all.adminpath {state}/admin
all.pidpath {state}/run
all.sitename LAB
if exec xrootd
xrd.port {port}
xrd.protocol http:{port} libXrdHttp.so
fi
xrd.tls {state}/host.pem {state}/host.key
xrd.tlsca certdir {state}/trusted
xrootd.tls capable all
xrootd.seclib libXrdSec.so
sec.protocol ztn
{f"xrootd.chksum {checksums}" if checksums else ""}
http.cadir {state}/trusted
http.cert {state}/host.pem
http.key {state}/host.key
http.gridmap {state}/gridmap
http.header2cgi Authorization authz
http.exthandler xrdtpc libXrdHttpTPC.so
http.exthandler xrdmacaroons libXrdMacaroons.so
macaroons.secretkey {macaroons}
ofs.authorize 1
acc.authdb {state}/authdb
ofs.authlib ++ libXrdMacaroons.so
ofs.authlib ++ libXrdAccSciTokens.so config={state}/scitokens.cfg
{more}
"""
    )
    open_to_everyone(folder)
    for path in (folder, *folder.rglob("*"), state, *state.rglob("*")):
        shutil.chown(path, ACCOUNT, ACCOUNT)
    return state
