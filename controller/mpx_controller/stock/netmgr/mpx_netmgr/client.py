"""The client of a controller for the net_manager, with the standard library alone."""

from __future__ import annotations

import http.client
import ipaddress
import json
import math
import ssl
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

MOST_BYTES = 1 << 20  # of an answer
NOT_THERE, TAKEN = 404, 409


class Unsteered(Exception):
    """The controller is not reached, refuses, or sends no valid answer; `status` is that of HTTP, or 0."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class AssignedPathSet(NamedTuple):
    """A path set: its number, its paths, the streams predicted for all of them, and its lease in seconds."""

    number: int
    paths: int
    streams: int
    lease_s: float
    answer: dict[str, Any]  # the whole answer of the controller


@dataclass
class Client:
    """Asks the controller at a URL; raises Unsteered where that fails. Each wait is at most `timeout_s`."""

    url: str
    token: str | None = None
    timeout_s: float = 1.0

    def assign(self, source: str, sink: str, paths: int) -> AssignedPathSet:
        """Return a new path set of at most so many paths (0: as many as help)."""
        return _path_set(self._ask("POST", "", {"source": source, "sink": sink, "paths": paths}))

    def place(self, number: int, ports: list[int], path: int | None = None) -> list[int]:
        """Put streams with these ports of the source on paths, and return which path each is on."""
        answer = self._ask("POST", f"/{number}/streams", {"ports": ports, "side": "source", "path": path})
        places = answer.get("paths") if isinstance(answer, dict) else None
        if not isinstance(places, list) or [type(each) for each in places] != [int] * len(ports):
            raise Unsteered(f"the controller sends an answer that is not valid: {_short(answer)}")
        return places

    def remove(self, number: int, ports: list[int]) -> None:
        """Take streams that have ended off their paths."""
        self._ask("POST", f"/{number}/streams/remove", {"ports": ports, "side": "source"})

    def renew(self, number: int) -> None:
        """Keep a path set for one more lease."""
        self._ask("POST", f"/{number}/renew")

    def release(self, number: int) -> None:
        """Release a path set."""
        self._ask("DELETE", f"/{number}")

    def _ask(self, method: str, what: str, body: dict[str, Any] | None = None) -> Any:
        try:
            status, text = self._answer(method, f"/path-sets{what}", body)
            answer = json.loads(text) if text.strip() else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Unsteered(f"the controller at {self.url} does not answer: {_short(reason)}") from None
        if not 200 <= status < 300:
            detail = answer.get("detail") if isinstance(answer, dict) else None
            raise Unsteered(f"the controller refuses ({status}): {_short(detail)}", status)
        return answer

    def _answer(self, method: str, what: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("its URL must begin with http:// or https://, and a host")
        if self.token and parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError("a token is sent by https:// only, as it could be read on the way")
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout_s)
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=self.timeout_s, context=context
            )
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            data = json.dumps(body).encode() if body is not None else b""
            connection.request(method, parts.path.rstrip("/") + what, data, headers)
            answer = connection.getresponse()
            text = answer.read(MOST_BYTES + 1)
        finally:
            connection.close()
        if len(text) > MOST_BYTES:
            raise ValueError(f"its answer has more than {MOST_BYTES} bytes")
        return answer.status, text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _path_set(answer: Any) -> AssignedPathSet:
    try:
        lease_s = float(answer["lease_s"])
        made = AssignedPathSet(
            int(answer["id"]), len(answer["paths"]), int(answer["streams"]), lease_s, answer
        )
    except (TypeError, KeyError, ValueError, OverflowError):
        raise Unsteered(f"the controller sends an answer that is not valid: {_short(answer)}") from None
    if not (0 < made.lease_s < math.inf and made.paths >= 1 and made.streams >= 1):
        raise Unsteered(f"the controller sends an answer that is not valid: {_short(answer)}")
    return made


def _short(answer: object) -> str:
    """Return one line for a log."""
    return "".join(c if c.isprintable() else " " for c in str(answer))[:200]
