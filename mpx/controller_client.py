"""Asks a controller for paths, over REST (docs/controller.md). Each question takes a bounded time."""

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Sequence
from typing import Any

from mpx.errors import ControllerError, UsageError
from mpx.path_set import PathSet, Side, read_path_set

TOKEN_VARIABLE = "MPX_CONTROLLER_TOKEN"
ANSWER_S = 2.0  # for a whole question and its answer
MOST_ANSWER = 1 << 20  # bytes
MOST_SAID = 300  # characters of what it says when it refuses


class Refusal(ControllerError):
    """It answers, and says no."""


class Forgotten(Refusal):
    """It does not know the path set any more."""


class ControllerClient:
    """One controller. May be used from several threads: each question has a connection of its own.

    Raises UsageError for what is no URL of one, and ControllerError, of any question, where it does not
    answer within ANSWER_S, refuses, or answers what makes no sense.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        told = urllib.parse.urlsplit(url)
        try:
            self._host, self._port = told.hostname, told.port
        except ValueError:
            self._host = None
        if told.scheme not in ("http", "https") or not self._host or told.query or told.fragment:
            raise UsageError(f"{url!r} is no controller; give its REST URL, as http://127.0.0.1:6680")
        self._path = told.path.rstrip("/")
        self._tls = ssl.create_default_context() if told.scheme == "https" else None
        self._token = os.environ.get(TOKEN_VARIABLE, "").strip()
        self._asking: set[http.client.HTTPConnection] = set()
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
            for connection in self._asking:
                _cut(connection)

    def _ask(self, method: str, name: str, told: object = None) -> Any:
        status, text = self._exchange(method, self._path + name, told)
        if status >= 300:
            kind = Forgotten if status == 404 and name.count("/") > 1 else Refusal
            raise kind(f"the controller at {self.url} refuses: {_said(text) or f'HTTP status {status}'}")
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
        connection = self._connection()
        late = threading.Event()

        def cut() -> None:
            late.set()
            _cut(connection)

        # Its own timeouts begin anew with each byte, so that a trickle could go on for ever.
        watch = threading.Timer(ANSWER_S, cut)
        watch.daemon = True
        try:
            watch.start()
            connection.connect()
            with self._guard:
                if self._stopped and method != "DELETE":
                    raise ControllerError(f"the controller at {self.url} is not asked: the copy ends")
                self._asking.add(connection)
            connection.request(method, name, body, headers)
            answer = connection.getresponse()
            text = answer.read(MOST_ANSWER + 1)
        # RuntimeError: there can be no further thread
        except (OSError, http.client.HTTPException, ValueError, RuntimeError) as error:
            why = f"does not answer within {ANSWER_S:g} s" if late.is_set() else f"cannot be asked: {error}"
            raise ControllerError(f"the controller at {self.url} {why}") from None
        finally:
            watch.cancel()
            with self._guard:
                self._asking.discard(connection)
            connection.close()
        if late.is_set():
            raise ControllerError(f"the controller at {self.url} does not answer within {ANSWER_S:g} s")
        if len(text) > MOST_ANSWER:
            raise ControllerError(f"the controller at {self.url} answers more than {MOST_ANSWER} bytes")
        return answer.status, text

    def _connection(self) -> http.client.HTTPConnection:
        assert self._host is not None
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=ANSWER_S, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=ANSWER_S)


def _cut(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError, AttributeError):  # it may have ended, or not begun
        connection.sock.shutdown(socket.SHUT_RDWR)


def _said(text: bytes) -> str:
    """Return what a refusal says, as one line."""
    try:
        said = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return " ".join(str(said).split())[:MOST_SAID]
