"""moto: AWS in memory, in Python. It checks no signatures unless it is told to."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_ports
from web.servers.s3_site import S3Site
from web.servers.site import ServerProcess

PAGE = 10  # keys that it lists at once
_REQUEST = re.compile(r'"(?:\x1b\[[0-9;]*m)*([A-Z]+) (\S+) HTTP/1\.[01](?:\x1b\[[0-9;]*m)*" ([0-9]{3})')


class MotoSite(S3Site):
    """It logs each request once it is answered."""

    def requests(self) -> list[tuple[str, str, int]]:
        """Method, target and status of each request so far."""
        found = _REQUEST.findall(self.server.said())
        return [(method, target, int(status)) for method, target, status in found]

    def parts(self, key: str) -> list[list[int]]:
        """The numbers of the parts of an object that were stored, in the order of their answers.

        A list begins each time that somebody asks which there are.
        """
        runs: list[list[int]] = [[]]
        for method, target, status in self.requests():
            if target.partition("?")[0] != f"/{key}":
                continue
            number = re.search(r"\bpartNumber=([0-9]+)", target)
            if number and method == "PUT" and status == 200:
                runs[-1].append(int(number[1]))
            elif method == "GET" and "uploadId=" in target:
                runs.append([])
        return runs


@contextlib.contextmanager
def moto_site(state: Path) -> Iterator[MotoSite]:
    """moto while in the `with` block; `state`: its folder."""
    port = free_ports(1)[0]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE)}
    server = ServerProcess(command, state / "moto.log", environment=environment)
    with MotoSite(port, server).running() as site:
        yield site
