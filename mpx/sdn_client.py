"""The client of a controller: asks for path sets, registers streams, gives feedback, over REST.

The way into `mpx/multipath/`: `find_paths` gets a path set for a copy, and what steers its streams over it.
The REST interface is in docs/controller.md; each request takes a bounded time. After Huang, SDN-enabled
GridFTP.
"""

import http.client
import ipaddress
import json
import os
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.engine.path_set import PathSet, Side, read_path_set
from mpx.errors import ControllerError, UsageError
from mpx.multipath.controller import (
    ANSWER_S,
    Distrusted,
    Forgotten,
    NoAnswer,
    NotAController,
    Refusal,
    Unreachable,
)
from mpx.multipath.http_exchange import Exchange
from mpx.multipath.paths_in_use import Multipath
from mpx.multipath.server_address import ServerAddress
from mpx.options import CopyOptions
from mpx.report import Report, Severity
from mpx.text import shown

TOKEN_VARIABLE = "MPX_CONTROLLER_TOKEN"
MOST_ANSWER = 1 << 20  # bytes, of an answer to a copy
OTHER_NAME = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL
MOST_DETAIL = 300  # characters of the reason that a refusal gives


class ControllerClient:
    """One controller. May be used from several threads: each request has a connection of its own.

    `token`: None for that of the environment. Raises UsageError for what is not the URL of a controller. Each
    request raises ControllerError where there is no answer within `answer_s` (ANSWER_S), a refusal, or an
    answer that is not valid.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        answer_s: float | None = None,
        most_bytes: int = MOST_ANSWER,
    ) -> None:
        self.url = url.rstrip("/")
        self._token = os.environ.get(TOKEN_VARIABLE, "").strip() if token is None else token
        self._answer_s, self._most_bytes = answer_s, most_bytes
        _check(url, self._token)
        self._tls = ssl.create_default_context() if url.startswith("https:") else None
        self._lock = threading.Lock()
        self._exchanges: set[Exchange] = set()  # under way; guarded by `_lock`
        self._stopped = False  # guarded by `_lock`

    def assign(self, source: str, sink: str, most: int) -> PathSet:
        """Return a new path set of at most `most` paths (0: as many as help) from one address to another."""
        return read_path_set(self.ask("POST", "/path-sets", {"source": source, "sink": sink, "paths": most}))

    def place(self, number: int, ports: Sequence[int], side: Side, path: str) -> None:
        """Put streams with these TCP ports on a path of a set; they are on it when this returns."""
        body = {"ports": list(ports), "side": side, "path": int(path)}
        self.ask("POST", f"/path-sets/{number}/streams", body)

    def remove(self, number: int, ports: Sequence[int], side: Side) -> None:
        """Report that streams have ended."""
        self.ask("POST", f"/path-sets/{number}/streams/remove", {"ports": list(ports), "side": side})

    def renew(self, number: int) -> PathSet:
        """Renew the lease of a set; return the set as it is now."""
        return read_path_set(self.ask("POST", f"/path-sets/{number}/renew"))

    def feedback(self, number: int, path: str, streams: int, rate_bps: float, rtt_s: float) -> None:
        """Report the best number of streams on a path, its rate with them, and its round-trip time."""
        body = {"path": int(path), "streams": streams, "rate_bps": rate_bps, "rtt_s": rtt_s}
        self.ask("POST", f"/path-sets/{number}/feedback", body)

    def release(self, number: int) -> None:
        """Release a set."""
        self.ask("DELETE", f"/path-sets/{number}")

    def stop(self) -> None:
        """End all requests under way; from now on only `release` sends one."""
        with self._lock:
            self._stopped = True
            for exchange in self._exchanges:
                exchange.cut()

    def ask(self, method: str, what: str, body: object = None) -> Any:
        """Send a request for `what` (such as "/path-sets"), and return the JSON of the answer."""
        status, text = self._exchange(method, self.url + what, body)
        if status >= 300:
            kind = Forgotten if status == 404 and what.count("/") > 1 else Refusal
            detail = _detail(text)
            why = detail or f"HTTP status {status}"
            raise kind(f"the controller at {self.url} refuses: {why}", status, detail)
        if not text:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise NotAController(f"the controller at {self.url} answers what is not JSON") from None

    def _exchange(self, method: str, url: str, body: object) -> tuple[int, bytes]:
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer_s = self._answer_s or ANSWER_S
        data = None if body is None else json.dumps(body).encode()
        exchange = Exchange(
            method,
            url,
            headers=headers,
            body=data,
            tls=self._tls,
            timeout_s=answer_s,
            most_bytes=self._most_bytes,
        )
        with self._lock:
            if self._stopped and method != "DELETE":
                raise ControllerError(
                    f"request to the controller at {self.url} cancelled: the copy is ending"
                )
            self._exchanges.add(exchange)
        try:
            exchange.start()
            in_time = exchange.ended.wait(answer_s)
        except RuntimeError as error:  # no thread can be started
            raise Unreachable(f"request to the controller at {self.url} failed: {error}") from None
        finally:
            exchange.cut()
            with self._lock:
                self._exchanges.discard(exchange)
        failure, answer = exchange.cause, exchange.answer
        if in_time and failure is not None and not _is_timeout(failure):  # sockets may, a bit sooner
            raise self._failure(failure)
        if answer is None:
            raise NoAnswer(f"the controller at {self.url} does not answer within {answer_s:g} s")
        if len(answer[1]) > self._most_bytes:
            raise NotAController(f"the controller at {self.url} answers more than {self._most_bytes} bytes")
        return answer

    def _failure(self, error: Exception) -> ControllerError:
        kind: type[ControllerError] = Unreachable
        why = str(getattr(error, "strerror", None) or error)
        if isinstance(error, ssl.SSLCertVerificationError):
            kind, why = Distrusted, _why_distrusted(error)
        elif isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
            kind = NotAController
        return kind(f"request to the controller at {self.url} failed: {why}")


def _check(url: str, token: str) -> None:
    """Raise UsageError for what cannot be the URL of a controller, or where the token would be readable."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise UsageError(
            "the URL of the controller has a user name or a password, which would appear in reports; "
            f"set {TOKEN_VARIABLE} to the token instead"
        )
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urllib.parse.SplitResult("", "", "", "", ""), None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    is_of_http = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not is_plain or not is_of_http or parts.query or parts.fragment:
        raise UsageError(
            f"{shown(url)!r} is not a controller URL; give its REST URL, as http://127.0.0.1:6680"
        )
    rest = url.rstrip("/").removesuffix("/RPC2")
    if rest != url.rstrip("/"):
        raise UsageError(f"{url!r} is for XML-RPC; give the REST URL, {rest}")
    if token and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise UsageError(
            f"a token ({TOKEN_VARIABLE}) is not sent to {url!r}, as it could be read on the way; "
            "give the controller's https:// URL, or no token"
        )


def _why_distrusted(error: ssl.SSLCertVerificationError) -> str:
    """Return why the certificate of a controller is not accepted, and what to do."""
    if error.verify_code in OTHER_NAME:
        return (
            f"its certificate is for another host ({error.verify_message}); "
            "use the name or the address in its subjectAltName"
        )
    return (
        f"its certificate is not trusted ({error.verify_message}); "
        "set SSL_CERT_FILE to the certificate of the authority that has signed it"
    )


def _is_timeout(error: Exception) -> bool:
    """Whether the socket, or a layer above it, has waited for too long."""
    import requests

    return isinstance(error, TimeoutError | requests.Timeout) or "timed out" in str(error)


def _is_loopback(host: str) -> bool:
    """Whether what goes to a host, by its address or name, stays on this one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _detail(text: bytes) -> str:
    """Return the reason that a refusal gives, as one line; empty where it gives none."""
    try:
        detail = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return shown(" ".join(str(detail).split())[:MOST_DETAIL])


def find_paths(
    url: str,
    options: CopyOptions,
    rtt: Rtt | None,
    *,
    far_is_source: bool,
    open_session: Callable[[Callable[[int], None]], Endpoint],
    report: Report,
) -> Multipath | None:
    """Return the paths that a controller assigns to a copy; None, with a note, where it assigns none.

    `rtt`: of the far endpoint; None where the copy cannot use several paths. Raises ControllerError with
    `--require-controller`, and UsageError for a URL that is not one.
    """
    client = ControllerClient(url)
    try:
        if rtt is None or rtt.address is None or rtt.local_host is None:
            raise ControllerError("this copy cannot use several paths: that needs MODE E between two hosts")
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
    report.decisions = {**report.decisions, "controller": url, "paths": multipath.described}
    return multipath
