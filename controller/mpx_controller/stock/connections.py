"""The TCP connections of this host, as the kernel lists them."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NET = Path("/proc/thread-self/net")
TABLES = ("tcp", "tcp6")
LISTENING = 0x0A
OVER = (0x05, 0x06, 0x07)  # FIN_WAIT2, TIME_WAIT and CLOSE: all that we had to send has arrived


@dataclass(frozen=True)
class Connection:
    """One of them; the remote end of a listening socket is port 0."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: int

    @property
    def lives(self) -> bool:
        """Whether it is a connection, or is about to be one, and may have data of ours on its way."""
        return self.state != LISTENING and self.state not in OVER


def read_connections(address: str | None = None) -> list[Connection]:
    """Return those of this network namespace, of an address only if one is given.

    Raises OSError where the kernel does not show them.
    """
    texts = [(NET / name).read_text("ascii") for name in TABLES if (NET / name).exists()]
    return [each for text in texts for each in parsed(text, address)]


def parsed(table: str, address: str | None = None) -> Iterator[Connection]:
    """Yield what a table says; a line that is cut off is passed over."""
    wanted = _hexadecimal(address) if address else ""
    for line in table.splitlines()[1:]:
        if wanted not in line:  # most are passed over so: a server may have thousands
            continue
        words = line.split()
        if len(words) > 3:
            found = Connection(_end(words[1]), _end(words[2]), int(words[3], 16))
            if address in (None, found.local[0], found.remote[0]):
                yield found


def _hexadecimal(address: str) -> str:
    raw = ipaddress.ip_address(address).packed
    return "".join(raw[at : at + 4][::-1].hex().upper() for at in range(0, len(raw), 4))


def _end(text: str) -> tuple[str, int]:
    """Return address and port; IPv4 that was mapped into IPv6 is IPv4."""
    raw, _, port = text.partition(":")
    words = [bytes.fromhex(raw[at : at + 8])[::-1] for at in range(0, len(raw), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return str(getattr(address, "ipv4_mapped", None) or address), int(port, 16)
