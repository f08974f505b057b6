"""Where hosts are: learnt from what they announce in ARP and neighbour discovery. No clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from mpx_controller.graph import Port

MOST_HOSTS = 20_000
MOST_AT_A_PORT = 4_000
MOST_ADDRESSES = 64  # of one host
SILENT_S = 4 * 3600.0  # a host that is silent for so long is asked for, and forgotten without an answer
ASKED_AT_ONCE = 100  # of these: their answers fit the limits of a port
ROOM_S = 300.0  # a host that is silent for so long is forgotten where there are too many


@dataclass(frozen=True)
class Host:
    """One interface of a host: hardware address, the port where it is, its IP addresses as text."""

    hardware: str
    port: Port
    addresses: tuple[str, ...] = ()


class Hosts:
    """All known hosts. Their number is bounded, as a host can claim to be thousands.

    Where there are too many the one that has been silent for longest makes room.
    """

    def __init__(self) -> None:
        self._by_hardware: dict[str, Host] = {}
        self._by_address: dict[str, str] = {}
        self._at: dict[Port, dict[str, float]] = {}  # when each was heard last, the longest ago first
        self._forgotten: list[str] = []
        self._asked: set[str] = set()  # who has been silent for too long, until the next round
        self.moves = 0  # so often one was heard where it was not known to be, or forgotten
        self.refused = 0  # that were one too many

    def heard(
        self, hardware: str, address: str | None, port: Port, now_s: float, *, sure: bool
    ) -> Host | None:
        """Note that a host has said its address at a port; return the host if it is new there.

        `sure`: the port is known to be an edge. While it is not, a host that is known elsewhere is not moved:
        its question may have come over a link that has not been found yet.
        """
        known = self._by_hardware.get(hardware)
        if known is not None and known.port != port and not sure:
            return None
        if known is None and not self._has_room(port, now_s):
            self.refused += 1
            return None
        host = Host(hardware, port, known.addresses if known else ())
        if address is not None and address not in host.addresses:
            self._take_from_others(address, hardware)
            for oldest in host.addresses[: max(0, len(host.addresses) + 1 - MOST_ADDRESSES)]:
                del self._by_address[oldest]
            host = replace(host, addresses=(*host.addresses, address)[-MOST_ADDRESSES:])
            self._by_address[address] = hardware
        self._by_hardware[hardware] = host
        if known is not None:
            self._leave(known)
        self._at.setdefault(port, {})[hardware] = now_s
        if known is not None and known.port == port:
            return None
        self.moves += 1
        return host

    def used(self, some: Iterable[str], now_s: float) -> None:
        """Note that hosts with these hardware addresses are there, whatever they say."""
        for hardware in some:
            if (host := self._by_hardware.get(hardware)) is not None:
                self._leave(host)
                self._at.setdefault(host.port, {})[hardware] = now_s

    def expire(self, now_s: float) -> list[Host]:
        """Forget hosts that stayed silent after they were asked for; return those to ask for now."""
        silent = []
        for here in self._at.values():
            for hardware, last_s in here.items():
                if now_s - last_s < SILENT_S:
                    break
                silent.append(hardware)
        asked, self._asked = self._asked, set()
        for hardware in silent:
            if hardware in asked:
                self._forget(hardware)
            elif len(self._asked) < ASKED_AT_ONCE:
                self._asked.add(hardware)
        return [self._by_hardware[hardware] for hardware in silent if hardware in self._asked]

    def take_forgotten(self) -> list[str]:
        """Return the hardware addresses of hosts forgotten for their silence since the last call."""
        taken, self._forgotten = self._forgotten, []
        return taken

    def restore(self, hosts: Iterable[Host], now_s: float) -> None:
        """Restore what was known before a restart."""
        for host in hosts:
            for address in host.addresses or (None,):
                self.heard(host.hardware, address, host.port, now_s, sure=True)

    def gone(self, ports: Iterable[Port]) -> list[Host]:
        """Forget and return the hosts at these ports."""
        lost = set(ports)
        found = [host for host in self._by_hardware.values() if host.port in lost]
        for host in found:
            self._remove(host)
        return found

    def at(self, address: str) -> Host | None:
        """Return the host with an IP address."""
        return self._by_hardware.get(self._by_address.get(address, ""))

    def with_hardware(self, hardware: str) -> Host | None:
        """Return the host with a hardware address."""
        return self._by_hardware.get(hardware)

    @property
    def all(self) -> tuple[Host, ...]:
        """All hosts."""
        return tuple(self._by_hardware.values())

    def _has_room(self, port: Port, now_s: float) -> bool:
        """Whether there can be one more at a port, once one that is silent has been forgotten if need be."""
        here = self._at.get(port, {})
        if len(here) >= MOST_AT_A_PORT:
            crowd = [here]
        elif len(self._by_hardware) >= MOST_HOSTS:
            crowd = list(self._at.values())
        else:
            return True
        last_s, hardware = min((last_s, hardware) for each in crowd for hardware, last_s in _first(each))
        if now_s - last_s < ROOM_S:
            return False
        self._forget(hardware)
        return True

    def _forget(self, hardware: str) -> None:
        self._remove(self._by_hardware[hardware])
        self._forgotten.append(hardware)

    def _remove(self, host: Host) -> None:
        self.moves += 1
        self._leave(host)
        del self._by_hardware[host.hardware]
        for address in host.addresses:
            del self._by_address[address]

    def _leave(self, host: Host) -> None:
        here = self._at[host.port]
        del here[host.hardware]
        if not here:
            del self._at[host.port]

    def _take_from_others(self, address: str, hardware: str) -> None:
        other = self._by_hardware.get(self._by_address.get(address, ""))
        if other is not None and other.hardware != hardware:
            left = tuple(each for each in other.addresses if each != address)
            self._by_hardware[other.hardware] = replace(other, addresses=left)


def _first(silent: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    return islice(silent.items(), 1)
