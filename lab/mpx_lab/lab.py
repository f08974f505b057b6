"""A lab: built from a topology, queried and changed while it runs, and removed completely."""

import json
import os
import socket
from dataclasses import asdict, dataclass
from typing import Any, Self

from mpx.errors import MpxError, UsageError
from mpx_lab import cleanup, state
from mpx_lab.builder import Builder
from mpx_lab.capacities import CAPACITIES
from mpx_lab.controller_process import OwnController, check_installed
from mpx_lab.emulator.link import EmulatedLink
from mpx_lab.lab_host import LabHost
from mpx_lab.lab_link import LabLink
from mpx_lab.namespace import RUN_NETNS
from mpx_lab.ovs import OpenVSwitch
from mpx_lab.own_controller import check_steers
from mpx_lab.plan import plan
from mpx_lab.programs import PACKAGES, find
from mpx_lab.route_list import Route, routes_of
from mpx_lab.simulated import is_simulated
from mpx_lab.state import DEFAULT_ID, LabError, Owner, State
from mpx_lab.steps import SWITCHES, Controller, netns_name
from mpx_lab.topology import Topology


class Lab:
    """A running lab. Made by `up` or `attach`; as a context manager it is taken down at the end."""

    def __init__(
        self, complete: State, started: dict[str, EmulatedLink] | None = None, replaced: bool = False
    ) -> None:
        self.replaced = replaced  # whether remains of another lab of its ID were removed
        self.id = complete.lab_id
        self.topology = complete.topology
        self.controller = complete.controller
        self.folder = state.folder_of(complete.lab_id)
        self._token = complete.token
        self._started = started or {}

    @classmethod
    def up(
        cls,
        topology: Topology,
        lab_id: str = DEFAULT_ID,
        *,
        scale: float = 1.0,
        controller: Controller | None = None,
        keep: bool = False,
    ) -> Self:
        """Build a lab, and return when every host reaches every other of its networks.

        With a controller elsewhere that is for it to bring about. With the lab's own
        (`own_controller.OWN`) also when that knows all links and hosts. `scale` multiplies rates and byte
        queues. What an interrupted lab of this ID has left is removed first; so is this lab when the calling
        program ends without having taken it down, unless `keep`. Raises UsageError without root or a program
        it needs, or for a controller that cannot be; LabError where such a lab runs or a step fails (then
        nothing is left).
        """
        require_root()
        state.check_id(lab_id)
        topology = topology.scaled(scale)
        for program in PACKAGES if topology.switches else ("ip",):
            find(program)
        if controller and controller.own:
            check_steers(topology)
            check_installed()
        elif controller:
            _check_known(controller)
        with state.locked(lab_id):
            there = state.load(lab_id)
            if there and not cls(there).faults():
                raise LabError(
                    f"the lab '{lab_id}' is up already ({there.topology.name}); take it down with "
                    f"'mpx lab down --lab {lab_id}', or give this one another ID"
                )
            replaced = cleanup.remains(lab_id)
            cleanup.remove(lab_id)
            builder = Builder(lab_id)
            try:
                builder.build(plan(topology, lab_id, controller, in_kernel=is_simulated()))
                complete = State(lab_id, topology, controller, None if keep else Owner.this_process())
                state.save(complete)
            except BaseException:
                cleanup.remove(lab_id)
                builder.reap_links()
                raise
        return cls(complete, builder.links, replaced)

    @classmethod
    def attach(cls, lab_id: str = DEFAULT_ID) -> Self:
        """Return the lab that runs; raises LabError, having removed what an interrupted one had left."""
        require_root()
        complete = state.load(state.check_id(lab_id))
        if complete is None:
            with state.locked(lab_id, wait=False):
                complete = state.load(lab_id)
                if complete is None and cleanup.remains(lab_id):
                    cleanup.remove(lab_id)
                    raise LabError(f"the lab '{lab_id}' was interrupted; its remains have been removed")
        if complete is None:
            raise LabError(f"there is no lab '{lab_id}'; build one with 'mpx lab up NAME --lab {lab_id}'")
        return cls(complete)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def down(self) -> None:
        """Take it down; does nothing where it is down already, even if another lab has its ID now."""
        with state.locked(self.id):
            there = state.load(self.id)
            if there is None or there.token == self._token:
                cleanup.remove(self.id)
        for link in self._started.values():
            link.stop()  # it has ended: this collects its exit code

    @property
    def hosts(self) -> list[LabHost]:
        """All hosts, sources first."""
        return [self.host(name) for name in self.topology.hosts]

    @property
    def links(self) -> list[LabLink]:
        """All links, in the order of the topology."""
        return [self.link(link.name) for link in self.topology.links]

    def host(self, name: str) -> LabHost:
        """Return a host; raises UsageError, naming the hosts there are."""
        return LabHost(self.id, self.topology, name)

    def link(self, name: str) -> LabLink:
        """Return a link; raises UsageError, naming the links there are."""
        return LabLink(self.id, self.topology, name)

    def routes(self) -> list[Route]:
        """Return the routes that were set for TCP connections of hosts; all others are the default."""
        return [route for name in self.topology.hosts for route in routes_of(self.folder, name)]

    def faults(self) -> list[str]:
        """Return a sentence for each part that has failed."""
        names = [*self.topology.hosts, *([SWITCHES] if self.topology.switches else [])]
        found = [
            f"the namespace of {name} does not exist any more"
            for name in names
            if not (RUN_NETNS / netns_name(self.id, name)).exists()
        ]
        for link in self.links:
            try:
                link.status()
            except (MpxError, OSError) as error:
                found.append(f"the link {link.name} does not work ({error})")
        if self.topology.switches and not OpenVSwitch(self.folder, "", {}).serves():
            found.append("the switches have ended")
        if self.topology.switches and self.controller:
            own = OwnController(self.folder)
            if self.controller.own and not own.lives():
                found.append(f"the lab's controller has ended{own.last_words()}")
            if not self.controller.own and not self._relay().lives():
                found.append("the relay to the controller has ended")
        return found

    def _relay(self) -> Owner:
        return Owner(**json.loads((self.folder / "relay.json").read_text()))

    def connected(self) -> dict[str, bool] | None:
        """Return for each switch whether its controller answers it; None where there is no controller."""
        if not (self.topology.switches and self.controller):
            return None
        if self.controller.own:
            there = OwnController(self.folder).connected(netns_name(self.id, SWITCHES))
            return {name: self.topology.datapath_id(name) in there for name in self.topology.switches}
        return OpenVSwitch(self.folder, "", {}).connected(self.topology.switches)

    def controller_failure(self) -> str:
        """Return why a switch last failed to connect to its controller; empty where none ever failed."""
        log = self.folder / "relay.log"
        said = log.read_text().splitlines() if log.exists() else []
        return said[-1] if said else ""

    def lost_at_switches(self) -> int:
        """Return how many frames Open vSwitch did not read from its ports in time."""
        return OpenVSwitch(self.folder, "", {}).lost() if self.topology.switches else 0

    def lost_elsewhere(self) -> int:
        """Return how many frames were lost anywhere but in an emulated queue, by a set loss or a cut.

        A run in which this grows was limited by the machine, not the network, and does not count.
        """
        links = [link.stats() for link in self.links if link.emulated]
        lost = sum(link.a_to_b.dropped_elsewhere + link.b_to_a.dropped_elsewhere for link in links)
        return lost + self.lost_at_switches()

    def status(self) -> dict[str, Any]:
        """Return what `mpx lab status --json` prints; raises LabError where a part has ended."""
        faults = self.faults()
        if faults:
            raise LabError(
                f"the lab '{self.id}' is broken: {'; '.join(faults)}; "
                f"take it down with 'mpx lab down --lab {self.id}'"
            )
        capacities = self.folder / CAPACITIES
        return {
            "name": self.topology.name,
            "lab": self.id,
            "scale": self.topology.scale,
            "hosts": [{"name": host.name, "addresses": list(host.addresses)} for host in self.hosts],
            "links": [link.status().as_json() for link in self.links],
            "routes": [asdict(route) for route in self.routes()],
            "controller": self.controller
            and {
                "openflow": f"tcp:{self.controller.host}:{self.controller.port}",
                "rest": self.controller.rest,
                "xmlrpc": self.controller.xmlrpc,
            },
            "connected": self.connected(),
            "capacities": str(capacities) if capacities.exists() else None,
        }


@dataclass(frozen=True)
class TakenDown:
    """What a removed lab consisted of."""

    anything: bool
    complete: bool


def take_down(lab_id: str) -> TakenDown:
    """Remove a lab and return what it consisted of; waits while another process builds it."""
    require_root()
    with state.locked(state.check_id(lab_id)):
        there = TakenDown(cleanup.remains(lab_id), state.is_complete(lab_id))
        cleanup.remove(lab_id)
    return there


def _check_known(controller: Controller) -> None:
    """Raise UsageError unless the controller's host has an address; it may begin to serve later."""
    try:
        socket.getaddrinfo(controller.host, controller.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"the controller's host '{controller.host}' cannot be resolved: {error}; "
            "write tcp:HOST:PORT with a name or an address that this machine can resolve"
        ) from None


def require_root() -> None:
    """Raise UsageError unless this is root."""
    if os.geteuid() != 0:
        raise UsageError("the lab makes network namespaces and needs root: run it again with sudo")
