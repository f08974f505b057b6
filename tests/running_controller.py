"""`mpx controller` as a process of its own."""

import json
import signal
import urllib.request
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from forked_mpx import Forked
from mpx_command import encoded


class Running:
    """`mpx controller` as a process of its own."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.urls = json.loads(process.stdout.readline())
        self.rpc = xmlrpc.client.ServerProxy(self.urls["xmlrpc"])

    @property
    def port(self) -> int:
        return int(self.urls["openflow"].rsplit(":", 1)[1])

    @property
    def api(self) -> tuple[str, int]:
        """Where it takes requests."""
        host, port = self.urls["rest"].partition("://")[2].split(":")
        return host, int(port)

    def get(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.urls['rest']}/{what}", timeout=30) as answer:
            return json.load(answer)

    def metric(self, name: str) -> int:
        with urllib.request.urlopen(f"{self.urls['rest']}/metrics", timeout=30) as answer:
            lines = dict(line.split() for line in answer.read().decode().splitlines() if line[0] != "#")
        return int(lines[f"mpx_{name}"])

    def ask(self, method: str, what: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data or b""))}
        asked = urllib.request.Request(f"{self.urls['rest']}/{what}", data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read() or b"null")


@contextmanager
def controller(
    state: Path, port: int = 0, config: str = "", *words: object, errors: Path | None = None
) -> Iterator[Running]:
    """Run one; `config` is what its configuration file says, `errors` where what it complains about goes."""
    file = state.with_suffix(".toml")
    file.write_text(config)
    capacities = state.with_name("capacities.json")
    if not capacities.exists():
        capacities.write_text("[]")  # tests replace it once their network is there
    asked = (
        *("controller", "--config", file, "--listen", f"127.0.0.1:{port}", "--api", "127.0.0.1:0"),
        *("--state", state, "--capacities", capacities),
        *words,
    )
    with (
        errors.open("w") if errors else nullcontext() as log,
        Forked(encoded(asked), stderr=log.fileno() if log else None) as process,
    ):
        try:
            yield Running(process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(240)
