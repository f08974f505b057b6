"""A host of a lab: runs commands and sets routes."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx_lab import namespace
from mpx_lab.builder import apply_settings, ip
from mpx_lab.plan import (
    DEFAULT_CONGESTION,
    UNSCALED_WINDOW_BYTES,
    fixes_buffers,
    no_routes,
    routes,
    window_settings,
)
from mpx_lab.route_list import Route, routes_of, save_routes, with_route
from mpx_lab.state import LabError, environment, folder_of, load, locked
from mpx_lab.steps import netns_name
from mpx_lab.topology import Interface, Topology

CONGESTION_NAME = re.compile(r"[a-z0-9_]{1,15}")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
SMALLEST_WINDOW_BYTES = 4096  # with less, connections stall
LARGEST_WINDOW_BYTES = 1 << 30  # of TCP


class LabHost:
    """One host of the lab `lab_id`."""

    def __init__(self, lab_id: str, topology: Topology, name: str) -> None:
        if name not in topology.hosts:
            raise UsageError(
                f"there is no host '{name}' in {topology.name}; there are {', '.join(topology.hosts)}"
            )
        self.name = name
        self.netns = netns_name(lab_id, name)
        self._lab_id = lab_id
        self._topology = topology

    @property
    def addresses(self) -> tuple[str, ...]:
        """IPv4 and IPv6 of each interface."""
        return tuple(address for face in self._topology.interfaces(self.name) for address in face.addresses)

    def command(
        self, args: Sequence[str], uid: int = namespace.SAME_USER, gid: int = namespace.SAME_USER
    ) -> list[str]:
        """Return `args` as a command that runs them on this host."""
        enter = [sys.executable, "-I", "-S", namespace.__file__, str(namespace.RUN_NETNS / self.netns)]
        return [*enter, str(folder_of(self._lab_id) / "hosts"), str(uid), str(gid), *args]

    def popen(self, args: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Start a command on this host, with the options of subprocess.Popen; it keeps its process id."""
        return subprocess.Popen(self.command(args), **self._with_mark(options))

    def run(
        self, args: Sequence[str], check: bool = False, **options: Any
    ) -> "subprocess.CompletedProcess[Any]":
        """Run a command on this host to its end, with the options of subprocess.run."""
        return subprocess.run(self.command(args), check=check, **self._with_mark(options))

    def set_route(
        self, to: str | None = None, congestion: str = DEFAULT_CONGESTION, window_bytes: int | None = None
    ) -> None:
        """Set what TCP connections to the host `to` have: congestion control, advertised window.

        Without `to` it is so for all, whatever was set for one before. The window is what this host lets the
        other send: 65535 exactly, any other to about a tenth, which only all connections together can have;
        None leaves it to the kernel. Programs that choose a congestion control themselves get theirs. Raises
        UsageError, also where the kernel has no such congestion control, and LabError where the lab is gone.
        """
        if not CONGESTION_NAME.fullmatch(congestion):
            raise UsageError(
                f"'{congestion}' is not the name of a congestion control; write for example cubic or bbr"
            )
        if window_bytes is not None and not SMALLEST_WINDOW_BYTES <= window_bytes <= LARGEST_WINDOW_BYTES:
            raise UsageError(f"a window must be {SMALLEST_WINDOW_BYTES} bytes to 1 GiB, not {window_bytes}")
        if to is not None and fixes_buffers(window_bytes):
            raise UsageError(
                f"a window of {window_bytes} bytes cannot be for one host only, as it needs buffers of that "
                f"size for all that {self.name} receives; set it for all hosts, or one of "
                f"{UNSCALED_WINDOW_BYTES} bytes"
            )
        fresh = Route(self.name, to, congestion, window_bytes)
        lines = self._lines(fresh)
        folder = folder_of(self._lab_id)
        with locked(self._lab_id):
            self._check_there()
            before = routes_of(folder, self.name)
            if to is not None:
                self._check_buffers(before)
            try:
                ip(self.netns, lines, environment(self._lab_id))
            except LabError:
                self._check_congestion(congestion)
                raise
            if to is None:
                apply_settings(self.netns, window_settings(window_bytes))
            save_routes(folder, self.name, with_route(before, fresh))

    def address_of(self, other: str) -> str:
        """Return the IPv4 address at which this host reaches another; raises UsageError if it does not."""
        return self._pairs(other)[0][1].ipv4

    def _lines(self, fresh: Route) -> list[str]:
        """Return the lines for `ip -batch`."""
        settings = fresh.congestion, fresh.window_bytes
        if fresh.to is not None:
            return [
                line for face, target in self._pairs(fresh.to) for line in routes(face, target, *settings)
            ]
        mine = self._topology.interfaces(self.name)
        lines = [line for face in mine for line in routes(face, None, *settings)]
        return lines + [line for pair in self._neighbours() for line in no_routes(*pair)]

    def _pairs(self, to: str) -> list[tuple[Interface, Interface]]:
        """Return interfaces of this host with those of another in their network; raises UsageError."""
        other = LabHost(self._lab_id, self._topology, to).name
        pairs = [(face, target) for face, target in self._neighbours() if target.host == other]
        if not pairs:
            raise UsageError(f"{self.name} and {to} share no network, so there is no route between them")
        return pairs

    def _check_there(self) -> None:
        """Raise LabError where the lab was taken down meanwhile, also where another lab has its ID now."""
        there = load(self._lab_id)
        if there is None or there.topology != self._topology:
            raise LabError(f"the lab '{self._lab_id}' was taken down meanwhile")

    def _check_buffers(self, before: Sequence[Route]) -> None:
        """Raise UsageError where a window for all hosts has fixed the buffers of all connections."""
        for route in before:
            if route.to is None and fixes_buffers(route.window_bytes):
                raise UsageError(
                    f"{self.name} has a window of {route.window_bytes} bytes for all hosts, and its buffers "
                    f"would hold for the one as well; first set it for all hosts to {UNSCALED_WINDOW_BYTES} "
                    "or off"
                )

    def _check_congestion(self, name: str) -> None:
        """Raise UsageError unless this kernel has that congestion control."""
        available = AVAILABLE.read_text().split()
        if name not in available:
            raise UsageError(
                f"this kernel has no congestion control '{name}', it has {', '.join(available)}; "
                f"perhaps 'modprobe tcp_{name}' adds it"
            )

    def _neighbours(self) -> list[tuple[Interface, Interface]]:
        """Return each interface of this host with each of another host in its network."""
        return [pair for pair in self._topology.neighbours() if pair[0].host == self.name]

    def _with_mark(self, options: dict[str, Any]) -> dict[str, Any]:
        given = options.pop("env", None)
        whole = environment(self._lab_id)
        return {**options, "env": whole if given is None else {**given, "MPX_LAB": self._lab_id}}
