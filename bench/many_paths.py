"""A lab that a controller steers, and a stock server and clients in it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from far_controller import reached_from
from mpx_lab.capacities import CAPACITIES, capacities_text
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.plan import Controller
from mpx_lab.state import folder_of
from mpx_lab.topology import Topology

from mpx.sdn_client import ControllerClient

READY_WITHIN_S = 60.0
LOOK_S = 0.1
ENDS_WITHIN_S = ANSWER_S = 10.0


@dataclass(frozen=True)
class ManyPaths:
    """A running lab with its controller; REST addresses: `url` for its hosts, `rest` for this process."""

    lab: Lab
    process: "subprocess.Popen[str]"
    rest: str
    url: str

    @property
    def addresses(self) -> tuple[str, str]:
        """Of the first source and the first sink."""
        topology = self.lab.topology
        first = (topology.sources[0], topology.sinks[0])
        return self.lab.host(first[0]).addresses[0], self.lab.host(first[1]).addresses[0]

    def ask(self, method: str, what: str, body: object = None) -> Any:
        """Ask the controller; raises ControllerError where that fails."""
        return ControllerClient(self.rest, "", answer_s=ANSWER_S).ask(method, f"/{what}", body)

    def around(self, source: str, sink: str, paths: int, *options: str) -> list[str]:
        """Return the words before a command whose streams are to be steered."""
        run = [sys.executable, "-m", "mpx", "controller", "run", "--url", self.url, *options]
        return [*run, source, sink, str(paths), "--"]


@contextmanager
def many_paths(
    topology: Topology, lab_id: str, folder: Path, config: Mapping[str, str] | None = None
) -> Iterator[ManyPaths]:
    """Build it, and yield it once all links and hosts are known.

    `config`: lines of the controller's configuration, by section. Its log goes into `folder`. Raises
    RuntimeError where that takes too long.
    """
    capacities = folder / CAPACITIES
    capacities.unlink(missing_ok=True)  # the link of an earlier run
    capacities.write_text(capacities_text(topology))
    file = folder / "controller.toml"
    file.write_text("".join(f"[{section}]\n{lines}\n" for section, lines in (config or {}).items()))
    words = [sys.executable, "-m", "mpx", "controller", "-v", "--config", str(file)]
    words += ["--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--capacities", str(capacities)]
    with ExitStack() as ended:
        log = ended.enter_context((folder / "controller.log").open("w"))
        process = ended.enter_context(
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ)
        )
        ended.callback(_end, process)
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        ports = {name: int(urls[name].rsplit(":", 1)[1]) for name in ("openflow", "rest")}
        lab = ended.enter_context(
            Lab.up(topology, lab_id, controller=Controller("127.0.0.1", ports["openflow"]))
        )
        capacities.unlink()
        capacities.symlink_to(folder_of(lab_id) / CAPACITIES)  # which follows what becomes of links
        url = ended.enter_context(reached_from(lab.hosts[0], ports["rest"]))
        for host in lab.hosts[1:]:
            ended.enter_context(reached_from(host, ports["rest"], int(url.rsplit(":", 1)[1])))
        made = ManyPaths(lab, process, urls["rest"], url)
        _wait(lambda: _is_known(made))
        yield made


def _is_known(made: ManyPaths) -> bool:
    """Whether the controller knows all links with what they carry, and all hosts, which speak for that."""
    topology = made.lab.topology
    between = [link for link in topology.links if set(link.ends) <= set(topology.switches)]
    seen = made.ask("GET", "topology")
    if len(seen["links"]) != 2 * len(between):
        return False
    rates = sorted(link.rate_bps for link in between if link.rate_bps is not None for _ in range(2))
    found = sorted(link["rate_bps"] for link in seen["links"])
    if [rate for rate in found if rate in rates] != rates:
        return False
    for host in made.lab.hosts:
        _speak(host.netns, next(to for to in made.addresses if to not in host.addresses))
    return len(seen["hosts"]) == len(topology.hosts)


def _speak(netns: str, to: str) -> None:
    with suppress(OSError), inside(netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as one:
        one.sendto(b"here", (to, 9))


def _wait(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + READY_WITHIN_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"the controller does not know the whole lab after {READY_WITHIN_S:g} s")
        time.sleep(LOOK_S)


def _end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()


def carried(lab: Lab, links: Sequence[str]) -> list[int]:
    """Return the bytes that each of some links has carried, both ways together."""
    stats = [lab.link(name).stats() for name in links]
    return [each.a_to_b.delivered.bytes + each.b_to_a.delivered.bytes for each in stats]
