"""A lab whose switches a controller of ours steers, known to work when it is handed out."""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from mpx_lab.topology import Topology

from smoc.flow import measure

FOUND_S = 60.0


class NotFound(Exception):
    """The controller has not found what there is."""


@contextmanager
def steered(
    topology: Topology, name: str, *, scale: float = 1.0, selection: str = "widest-apart"
) -> Iterator[tuple[Lab, str]]:
    """Yield a lab and the URL of its controller, which knows all links and hosts."""
    with tempfile.TemporaryDirectory() as folder, _controller(Path(folder), selection) as urls:
        port = int(urls["openflow"].rsplit(":", 1)[1])
        with Lab.up(topology, name, scale=scale, controller=Controller("127.0.0.1", port)) as lab:
            (Path(folder) / "capacities.json").symlink_to(lab.status()["capacities"])
            between = [link for link in topology.links if set(link.ends) <= set(topology.switches)]
            _wait(urls["rest"], links=2 * len(between), hosts=0, emulated=2 * _emulated(lab))
            source, sink = topology.sources[0], topology.sinks[0]
            measure(lab, (source, sink), "tcp", connections=1, seconds=0.2)
            _wait(urls["rest"], links=2 * len(between), hosts=len(topology.hosts), emulated=0)
            yield lab, urls["rest"]


def asked(url: str, what: str) -> Any:
    """Return what the controller answers."""
    with urllib.request.urlopen(f"{url}/{what}", timeout=30) as answer:
        return json.load(answer)


def _emulated(lab: Lab) -> int:
    return sum(link.emulated for link in lab.links)


def _wait(url: str, *, links: int, hosts: int, emulated: int) -> None:
    until_s = time.monotonic() + FOUND_S
    while True:
        found = asked(url, "topology")
        told = sum(link["rate_bps"] != 1e9 for link in found["links"])
        if len(found["links"]) == links and len(found["hosts"]) >= hosts and told >= emulated:
            return
        if time.monotonic() > until_s:
            raise NotFound(f"{len(found['links'])} of {links} links, {len(found['hosts'])} of {hosts} hosts")
        time.sleep(0.05)


@contextmanager
def _controller(folder: Path, selection: str) -> Iterator[dict[str, str]]:
    config = folder / "controller.toml"
    config.write_text(f'[path_sets]\nselection = "{selection}"\n')
    words = ["--config", config, "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0"]
    words += ["--capacities", folder / "capacities.json"]
    command = [sys.executable, "-m", "mpx", "controller", *map(str, words)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)
