"""Where hosts are: learnt from what they say of themselves in ARP and in neighbour discovery."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpx_controller.graph import Port

MOST_HOSTS = 20_000
MOST_AT_A_PORT = 4_000
MOST_ADDRESSES = 64  # of one host


@dataclass(frozen=True)
class Host:
    """One interface of a host: hardware address, the port where it is, its IP addresses as text."""

    hardware: str
    port: Port
    addresses: tuple[str, ...] = ()


class Hosts:
    """All that are known by now. Numbers are bounded, as anybody can say to be thousands of hosts."""

    def __init__(self) -> None:
        self._by_hardware: dict[str, Host] = {}
        self._by_address: dict[str, str] = {}
        self._at: Counter[Port] = Counter()
        self.moves = 0  # so often one was heard where it was not known to be
        self.refused = 0  # that were one too many

    def heard(self, hardware: str, address: str | None, port: Port, *, sure: bool) -> Host | None:
        """Note that a host has said its address at a port; return the host if it is new there.

        `sure`: the port is known to be an edge. While it is not, a host that is known elsewhere is not moved:
        its question may have come over a link that has not been found yet.
        """
        known = self._by_hardware.get(hardware)
        if known is not None and known.port != port and not sure:
            return None
        if known is None and self._too_many(port):
            self.refused += 1
            return None
        host = Host(hardware, port, known.addresses if known else ())
        if address is not None and address not in host.addresses:
            self._take_from_others(address, hardware)
            for oldest in host.addresses[: len(host.addresses) + 1 - MOST_ADDRESSES]:
                del self._by_address[oldest]
            host = replace(host, addresses=(*host.addresses, address)[-MOST_ADDRESSES:])
            self._by_address[address] = hardware
        self._by_hardware[hardware] = host
        if known is not None:
            self._at[known.port] -= 1
        self._at[port] += 1
        if known is not None and known.port == port:
            return None
        self.moves += 1
        return host

    def restore(self, hosts: Iterable[Host]) -> None:
        """Have again what was known before a restart."""
        for host in hosts:
            for address in host.addresses or (None,):
                self.heard(host.hardware, address, host.port, sure=True)

    def gone(self, ports: Iterable[Port]) -> list[Host]:
        """Forget and return the hosts at these ports."""
        lost = set(ports)
        found = [host for host in self._by_hardware.values() if host.port in lost]
        for host in found:
            del self._by_hardware[host.hardware]
            for address in host.addresses:
                del self._by_address[address]
        for port in lost:
            del self._at[port]
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

    def _too_many(self, port: Port) -> bool:
        return len(self._by_hardware) >= MOST_HOSTS or self._at[port] >= MOST_AT_A_PORT

    def _take_from_others(self, address: str, hardware: str) -> None:
        other = self._by_hardware.get(self._by_address.get(address, ""))
        if other is not None and other.hardware != hardware:
            left = tuple(each for each in other.addresses if each != address)
            self._by_hardware[other.hardware] = replace(other, addresses=left)
