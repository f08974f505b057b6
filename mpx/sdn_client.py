"""The client of a controller: asks for path sets, registers streams, gives feedback, over REST.

The way into `mpx/multipath/`: `find_paths` gets a path set for a copy, and what steers its streams over it.
The REST interface is in docs/controller.md; each question takes a bounded time. After Huang, SDN-enabled
GridFTP.
"""

import contextlib
import http.client
import ipaddress
import json
import os
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.engine.path_set import PathSet, Side, read_path_set
from mpx.errors import ControllerError, UsageError
from mpx.multipath.controller import ANSWER_S, Forgotten, Refusal
from mpx.multipath.paths_in_use import Multipath
from mpx.multipath.server_address import ServerAddress
from mpx.options import CopyOptions
from mpx.report import Report, Severity

TOKEN_VARIABLE = "MPX_CONTROLLER_TOKEN"
MOST_ANSWER = 1 << 20  # bytes
OTHER_NAME = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL
MOST_SAID = 300  # characters of what it says when it refuses
_NO_URL = "{!r} is not a controller URL; give its REST URL, as http://127.0.0.1:6680"


class ControllerClient:
    """One controller. May be used from several threads: each question has a connection of its own.

    Raises UsageError for what is no URL of one, and ControllerError, of any question, where it does not
    answer within ANSWER_S, refuses, or answers what makes no sense.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise UsageError(
                "the URL of the controller has a user name or a password, which reports would tell; "
                f"set {TOKEN_VARIABLE} to the token instead"
            )
        try:
            told = urllib.parse.urlsplit(url)
            self._host, self._port = told.hostname, told.port
        except ValueError:
            raise UsageError(_NO_URL.format(url)) from None
        if told.scheme not in ("http", "https") or not self._host or told.query or told.fragment:
            raise UsageError(_NO_URL.format(url))
        self._path = told.path.rstrip("/")
        if self._path.endswith("/RPC2"):
            raise UsageError(
                f"{url!r} is for XML-RPC; give the REST URL, {url.rstrip('/').removesuffix('/RPC2')}"
            )
        self._tls = ssl.create_default_context() if told.scheme == "https" else None
        self._token = os.environ.get(TOKEN_VARIABLE, "").strip()
        if self._token and self._tls is None and not is_loopback(self._host):
            raise UsageError(
                f"{TOKEN_VARIABLE} is not sent to {url!r}, as anybody on the way could read it; "
                "give the controller's https:// URL, or unset it"
            )
        self._asking: set[_Exchange] = set()
        self._guard = threading.Lock()
        self._stopped = False

    def assign(self, source: str, sink: str, most: int) -> PathSet:
        """Return a new path set of at most `most` paths (0: as many as help) from one address to another."""
        return read_path_set(self._ask("POST", "/path-sets", {"source": source, "sink": sink, "paths": most}))

    def place(self, number: int, ports: Sequence[int], side: Side, path: str) -> None:
        """Have streams with these TCP ports on a path of a set; they are when it returns."""
        asked = {"ports": list(ports), "side": side, "path": int(path)}
        self._ask("POST", f"/path-sets/{number}/streams", asked)

    def remove(self, number: int, ports: Sequence[int], side: Side) -> None:
        """Say that streams have ended."""
        self._ask("POST", f"/path-sets/{number}/streams/remove", {"ports": list(ports), "side": side})

    def renew(self, number: int) -> PathSet:
        """Keep a set for one more lease; return it as it is now."""
        return read_path_set(self._ask("POST", f"/path-sets/{number}/renew"))

    def feedback(self, number: int, path: str, streams: int, rate_bps: float, rtt_s: float) -> None:
        """Tell how many streams were best on a path, what it carried then, and its round-trip time."""
        told = {"path": int(path), "streams": streams, "rate_bps": rate_bps, "rtt_s": rtt_s}
        self._ask("POST", f"/path-sets/{number}/feedback", told)

    def release(self, number: int) -> None:
        """Give a set back."""
        self._ask("DELETE", f"/path-sets/{number}")

    def stop(self) -> None:
        """Let all who wait for an answer go without one; nothing is asked any more but to release a set."""
        with self._guard:
            self._stopped = True
            for exchange in self._asking:
                exchange.cut()

    def _ask(self, method: str, name: str, told: object = None) -> Any:
        status, text = self._exchange(method, self._path + name, told)
        if status >= 300:
            kind = Forgotten if status == 404 and name.count("/") > 1 else Refusal
            why = _said(text) or f"HTTP status {status}"
            raise kind(f"the controller at {self.url} refuses: {why}", status)
        if not text:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ControllerError(f"the controller at {self.url} answers what is no JSON") from None

    def _exchange(self, method: str, name: str, told: object) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "Connection": "close"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        body = None
        if told is not None:
            body, headers["Content-Type"] = json.dumps(told).encode(), "application/json"
        exchange = _Exchange(self._connection(), method, name, body, headers)
        with self._guard:
            if self._stopped and method != "DELETE":
                raise ControllerError(f"the controller at {self.url} is not asked: the copy ends")
            self._asking.add(exchange)
        try:
            exchange.start()
            in_time = exchange.ended.wait(ANSWER_S)  # its socket may find the same a moment sooner
            is_late = not in_time or isinstance(exchange.error, TimeoutError)
        except RuntimeError as error:  # there can be no further thread
            raise ControllerError(f"the controller at {self.url} cannot be asked: {error}") from None
        finally:
            exchange.cut()
            with self._guard:
                self._asking.discard(exchange)
        if exchange.error is not None and not is_late:
            raise ControllerError(f"the controller at {self.url} cannot be asked: {_why(exchange.error)}")
        if exchange.answer is None:
            raise ControllerError(f"the controller at {self.url} does not answer within {ANSWER_S:g} s")
        status, text = exchange.answer
        if len(text) > MOST_ANSWER:
            raise ControllerError(f"the controller at {self.url} answers more than {MOST_ANSWER} bytes")
        return status, text

    def _connection(self) -> http.client.HTTPConnection:
        assert self._host is not None
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=ANSWER_S, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=ANSWER_S)


def distrusted(error: ssl.SSLCertVerificationError) -> str:
    """Return why a controller's certificate is not taken, and what to do."""
    if error.verify_code in OTHER_NAME:
        return (
            f"its certificate is for another host ({error.verify_message}); "
            "give the name or the address that it has as its subjectAltName"
        )
    return (
        f"its certificate is not to be trusted ({error.verify_message}); "
        "name the authority that has signed it in SSL_CERT_FILE"
    )


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return distrusted(error)
    return str(getattr(error, "strerror", None) or error)


class _Exchange(threading.Thread):
    """One question and its answer, in a thread of its own: finding names, TLS and trickles have no bound."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        name: str,
        body: bytes | None,
        headers: dict[str, str],
    ) -> None:
        super().__init__(name="mpx-controller", daemon=True)
        self.answer: tuple[int, bytes] | None = None
        self.error: Exception | None = None
        self.ended = threading.Event()  # or nobody waits any more
        self._connection, self._question = connection, (method, name, body, headers)

    def run(self) -> None:
        """Ask, unless nobody waits for it any more when there is a connection."""
        try:
            self._connection.connect()
            if not self.ended.is_set():
                self._connection.request(*self._question)
                answer = self._connection.getresponse()
                told = answer.status, answer.read(MOST_ANSWER + 1)
                self.answer = (
                    None if self.ended.is_set() else told
                )  # of one that was cut only a part has come
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.error = error
        finally:
            self.ended.set()
            self._connection.close()

    def cut(self) -> None:
        """Wait for nothing any more."""
        self.ended.set()
        with contextlib.suppress(OSError, AttributeError):  # it may have ended, or not begun
            self._connection.sock.shutdown(socket.SHUT_RDWR)


def is_loopback(host: str) -> bool:
    """Whether what goes to a host, by its address or name, stays on this one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _said(text: bytes) -> str:
    """Return what a refusal says, as one line."""
    try:
        said = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return " ".join(str(said).split())[:MOST_SAID]


def find_paths(
    url: str,
    options: CopyOptions,
    rtt: Rtt | None,
    *,
    far_is_source: bool,
    open_session: Callable[[Callable[[int], None]], Endpoint],
    report: Report,
) -> Multipath | None:
    """Return the paths that a controller gives a copy; None where it gives none, which is noted.

    `rtt`: of the far endpoint; None where it cannot use paths. Raises ControllerError with
    `--require-controller`, UsageError for what is no URL.
    """
    client = ControllerClient(url)
    try:
        if rtt is None or rtt.address is None or rtt.local_host is None:
            raise ControllerError("this copy cannot be spread over paths: it needs MODE E between two hosts")
        near, far = options.data_address or rtt.local_host, rtt.address[0]
        known = client.assign(*((far, near) if far_is_source else (near, far)), options.paths or 0)
    except ControllerError as error:
        if options.require_controller:
            raise
        report.note(f"one path is used: {error}", Severity.NOTICE)
        return None
    most = options.streams or options.max_streams
    known = known.only(min(most, options.max_sessions) if far_is_source else most)
    near_side: Side = "sink" if far_is_source else "source"
    multipath = Multipath(
        client,
        known,
        near=near_side,
        far=ServerAddress(far, required=options.require_controller, note=report.note),
        open_session=open_session,
        note=report.note,
    )
    report.decisions["controller"], report.decisions["paths"] = url, multipath.described
    return multipath
