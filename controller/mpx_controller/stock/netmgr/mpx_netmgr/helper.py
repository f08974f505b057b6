"""The session's end of the helper process (helper_process.py)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .pair import Pair

WITHIN_S = 1.0  # that a stream waits for its path at most
MOST_MESSAGE = 4096


class Helper:
    """Starts the process, which ends with this object. Raises OSError where it cannot."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asked = 0
        with other:
            # The program that has loaded us is no Python, but its interpreter knows where that is.
            self._process = subprocess.Popen(
                [sys.executable or "python3", "-s", "-S", "-m", "mpx_netmgr.helper_process"],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
                start_new_session=True,
            )

    def place(self, pair: Pair, port: int) -> dict[str, Any]:
        """Return what became of a stream: `path`, `paths`, `path_set`, or `failed` with the reason.

        Raises OSError where the process has ended.
        """
        self._asked += 1
        self._send({"number": self._asked, "place": [*pair, port]})
        deadline_s = time.monotonic() + WITHIN_S
        while (rest_s := deadline_s - time.monotonic()) > 0:
            self._socket.settimeout(rest_s)
            try:
                data = self._socket.recv(MOST_MESSAGE)
            except TimeoutError:
                break
            if not data:
                raise ConnectionError("the helper has ended")
            answer = json.loads(data)
            if answer["number"] == self._asked:  # others are late answers
                return dict(answer)
        return {"failed": f"the controller does not answer within {WITHIN_S:g} s"}

    def remove(self, pair: Pair, port: int) -> None:
        """A stream has ended; waits for nothing."""
        self._send({"remove": [*pair, port]})

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.settimeout(WITHIN_S)
        self._socket.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)
