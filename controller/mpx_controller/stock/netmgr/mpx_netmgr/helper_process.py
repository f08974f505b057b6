"""The helper process of a session, which talks to the controller: python -m mpx_netmgr.helper_process.

The session is a C program. It lets no thread of Python run between two hooks, so that leases could not be
renewed there; Python's modules for TLS cannot be loaded into it; and a request in the session itself could
block the transfer, for example while a name is looked up. The helper ends with the session, however that
ends, and releases the path sets.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import Any, NoReturn

from .client import Client, Unsteered
from .helper import MOST_MESSAGE, WITHIN_S
from .pair import Pair
from .settings import read_settings
from .steering import Steering

WHOLE_S = 3.0  # that an answer may take in all, however slowly it comes: the session may be gone meanwhile


class BoundedClient(Client):
    """A client whose whole answers are bounded in time, not each wait alone; for the main thread."""

    def _answer(self, method: str, what: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        signal.setitimer(signal.ITIMER_REAL, WHOLE_S)
        try:
            return super()._answer(method, what, body)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def serve(session: socket.socket, steering: Steering) -> None:
    """Serve the requests of a session until it is gone, then release its path sets."""
    while True:
        wait_s = min(steering.next_s() - time.monotonic(), 3600.0)
        if not select.select([session], [], [], max(0.0, wait_s))[0]:
            with suppress(Unsteered):
                steering.keep(time.monotonic())
            continue
        try:
            data = session.recv(MOST_MESSAGE)
        except OSError:
            data = b""
        if not data:
            break
        answer = _answer(json.loads(data), steering)
        if answer is not None:
            with suppress(OSError):  # it is gone, which the next look at it says
                session.send(json.dumps(answer).encode(), socket.MSG_NOSIGNAL)
    steering.release()


def _answer(message: dict[str, Any], steering: Steering) -> dict[str, Any] | None:
    now_s = time.monotonic()
    source, sink, task, port = message.get("place") or message["remove"]
    pair = Pair(source, sink, task)
    if "remove" in message:
        with suppress(Unsteered):
            steering.remove(pair, port)
        return None
    try:
        path = steering.place(pair, port, now_s)
        known = steering.get(pair, now_s)
    except Unsteered as error:
        return {"number": message["number"], "failed": str(error)}
    return {"number": message["number"], "path": path, "paths": known.paths, "path_set": known.number}


def _too_late(*_: object) -> NoReturn:
    raise TimeoutError(f"its answer takes more than {WHOLE_S:g} s")


def main() -> None:
    """Serve the session on standard input."""
    settings = read_settings(os.environ)
    client = BoundedClient(settings.url, settings.token, WITHIN_S)
    signal.signal(signal.SIGALRM, _too_late)
    serve(socket.socket(fileno=0), Steering(client, settings.paths))


if __name__ == "__main__":
    main()
