"""The process that has gfal2, and what it is told by its environment."""

import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mpx.endpoints.child_process import CLOSED_WITHIN_S, ChildProcess
from mpx.endpoints.gfal.meaning import NO_PROXY, is_not_trusted
from mpx.endpoints.gfal.settings import VARIABLE, GfalSettings
from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.exits import NO_LIBRARY, NO_LOGIN
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.endpoints.xrootd.process import environment
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, UsageError
from mpx.location import ROOT_PORTS, VIA_GFAL, WEB_PORTS, Location
from mpx.net.x509.ca_folder import CaFolder
from mpx.text import shown

PYTHON = "/usr/bin/python3"  # for which Debian has the binding
PROGRAM = str(Path(__file__).with_name("served") / "program.py")
_PACKAGES = (
    "apt-get install python3-gfal2 gfal2-plugin-gridftp gfal2-plugin-http gfal2-plugin-xrootd "
    "gfal2-plugin-srm gfal2-plugin-file (Debian)"
)
_LONGEST_TOLD = 500  # characters of what it said
_TEMPORARY = "/tmp"  # davix has there what is sent as it comes, and in no other folder
_TOKENS = ("BEARER_TOKEN", "BEARER_TOKEN_FILE")
_TAKE_TOKENS = ("https", "davs", *ROOT_PORTS, "srm")  # inside TLS


@dataclass(frozen=True, slots=True)
class GfalOptions:
    """What the user says of servers: all that XRootD's library is told, which gfal2 uses as well."""

    usual: XrootdOptions
    ipv6: bool = False  # nothing else is to be used


def server_of(location: Location) -> str:
    """Return `davs://host:port`: how gfal2 knows a server, and by which it finds credentials."""
    user = f"{location.user}@" if location.user else ""
    host = f"[{location.host}]" if ":" in location.host else location.host
    return f"{location.scheme.removeprefix(VIA_GFAL)}://{user}{host}:{location.port}"


class Opens(Enum):
    """Which files of this host gfal2 opens."""

    NONE = "none"
    SOURCES = "sources"  # it only reads them
    ALL = "all"


class GfalProcess(ChildProcess):
    """Serves SFTP over its socket; see program.py."""

    def __init__(
        self,
        servers: Sequence[Location],
        options: GfalOptions,
        tokens: BearerTokens,
        *,
        opens: Opens = Opens.NONE,
    ) -> None:
        """`servers`: that it has to do with, of which it serves the first; `opens`: and of this host.

        Raises UsageError where it cannot be started, and as BearerTokens.check.
        """
        self._first = first = servers[0]
        usual = options.usual
        of_root, by_server, self._sources = _tokens(servers, tokens)
        settings = GfalSettings(
            server_of(first),
            max(1, round(usual.timeout_s)),
            options.ipv6,
            usual.certificate or "",
            usual.key or "",
            ("/",) if opens is Opens.SOURCES else (),
            None if opens is Opens.ALL else _written(servers, sends=opens is Opens.SOURCES),
            by_server,
        )
        inherited = {name: value for name, value in os.environ.items() if name not in _TOKENS}
        self._cas = CaFolder(usual.ca) if usual.ca is not None else None
        if self._cas:  # which takes the place of the system's, too, by HTTP
            inherited.update(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=self._cas.folder)
        told_so = {**environment(usual, of_root, inherited, self._cas), VARIABLE: settings.text()}
        self._hands, theirs = socket.socketpair()
        self.handed_by = theirs.fileno()  # which has that number there, too
        try:
            with theirs:
                super().__init__([PYTHON, "-I", PROGRAM], first.host, told_so, [self.handed_by])
        except OSError as error:
            self._hands.close()
            self._remove_cas()
            raise UsageError(f"gfal2 needs {PYTHON}: {error.strerror}; {_PACKAGES}") from None

    def hand(self, fd: int) -> None:
        """Let it have an open file, for the copy that it is told of next; raises as `peek`.

        One that is confined finds none in the folder of our own (`/proc/PID/fd`).
        """
        try:
            socket.send_fds(self._hands, [b"1"], [fd])
        except OSError:
            raise self.ended() from None

    def close(self, wait_s: float = CLOSED_WITHIN_S) -> None:
        """See ChildProcess."""
        super().close(wait_s)
        self._hands.close()
        self._remove_cas()

    def _remove_cas(self) -> None:
        if self._cas:
            self._cas.close()

    def late(self, wait_s: float) -> MpxError:
        """See ChildProcess."""
        return ConnectionLost(f"{self.host} brought no answer by gfal2 within {wait_s:g} s")

    def ended(self) -> MpxError:
        """See ChildProcess."""
        code, lines = self.code(), self.said().split("\n")
        said = [line.strip() for line in lines if line.strip()]
        last = shown(said[-1])[:_LONGEST_TOLD] if said else ""
        place = f"{self.host}:{self._first.port}"
        if code == NO_LIBRARY:
            return UsageError(f"gfal2 is not installed for {PYTHON} ({last}); {_PACKAGES}")
        if code == NO_LOGIN:
            return AuthenticationError(not_let_in(self.host, last, self._sources))
        if code is not None and code < 0:
            words = f"; its last words: {last}" if last else ""
            return ConnectionLost(f"{self.host}: gfal2 crashed ({_signal(-code)}){words}")
        tls = "; or it has no TLS: then write root://" if self._first.scheme.endswith("roots") else ""
        return ConnectionLost(f"{place}, by gfal2: {last or f'its process ended with code {code}'}{tls}")


def _written(servers: Sequence[Location], *, sends: bool) -> tuple[str, ...]:
    """Return where this host has what is sent, also from one server to another; of names is nothing."""
    has_web = any(not server_of(each).startswith(("root", "gsiftp")) for each in servers)
    return (_TEMPORARY,) if has_web and (sends or len(servers) > 1) else ()


def _tokens(servers: Sequence[Location], tokens: BearerTokens) -> tuple[str, dict[str, str], list[str]]:
    """Return the token for XRootD's own protocol, those for other servers, and where they were found.

    None goes in the clear.
    The first comes by the environment, where gfal2 takes it for any server. Raises as BearerTokens.check,
    and UsageError where it would be shown to a server that it is not for.
    """
    of_roots, by_server, without = set[str](), dict[str, str](), list[Location]()
    sources = dict[str, None]()
    for each in servers:
        server = server_of(each)
        scheme = server.partition(":")[0]
        token = tokens.check(each.host, each.port, time.time()) if scheme in _TAKE_TOKENS else None
        if token:
            sources[token.source] = None
        if scheme in ROOT_PORTS:
            of_roots.add(token.secret if token else "")
        elif token:
            by_server[server] = token.secret
        elif scheme in (*WEB_PORTS, "srm"):  # which names servers of the web that have the data
            without.append(each)
    if len(of_roots) > 1:
        raise UsageError(
            "gfal2 would show one of the two servers the token of the other; "
            "copy to this host first, and from here by another command"
        )
    of_root = next(iter(of_roots), "")
    if of_root and without:
        raise UsageError(
            f"gfal2 would show {without[0].authority} the token of the other server, as it has none; "
            "copy to this host first, and from here by another command"
        )
    return of_root, by_server, list(sources)


def not_let_in(host: str, words: str, sources: Sequence[str] = ()) -> str:
    """Return the line of a server that accepts no credentials, or has none that is accepted here.

    `sources`: where tokens were found, that it may have refused.
    """
    if is_not_trusted(words):
        return f"{host} is not trusted: {words}; name the CA of its certificate by --ca or X509_CERT_DIR"
    if NO_PROXY in words:
        return (
            f"{host} lets nobody in without a proxy: {NO_PROXY}; make one (voms-proxy-init, "
            "grid-proxy-init), or name its file by --cert or X509_USER_PROXY"
        )
    tried = f" (the token found in {' and that in '.join(sources)} among them)" if sources else ""
    return (
        f"{host} accepts none of the credentials that gfal2 has{tried}, or is not trusted: {words}; get a "
        "token (BEARER_TOKEN_FILE) or a proxy (X509_USER_PROXY) for it, and name its CAs by --ca or "
        "X509_CERT_DIR"
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
