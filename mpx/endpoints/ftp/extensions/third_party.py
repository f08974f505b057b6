"""Data from one `mpx serve` to another: the extension MPX-TARGET on the wire.

docs/extensions.md describes it. The client asks the receiver for a ticket (dialing.py) and hands it to the
sender with `TARGET`, which opens the data connections itself: inside TLS, to the key that the client names.
"""

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mpx.endpoints.ftp.extensions.dialing import Ticket

FEATURE = "MPX-TARGET"  # in the reply to FEAT
VERB = "TARGET"
MOST_ADDRESSES = 4
_KEY = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # the name of a public key (net/tls.py)
_ID, _SECRET = re.compile(r"[0-9a-f]{32}", re.ASCII), re.compile(r"[0-9a-f]{64}", re.ASCII)
_LONGEST_PEM = 8192
_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A server that is to receive. It holds secrets, and is never shown but by `shown`."""

    addresses: tuple[tuple[str, int], ...]  # where it is reached, in the order in which they are tried
    key: str  # the name of the public key that its certificate must have
    ticket: Ticket  # for data that go up
    pem: str = ""  # a certificate with its key, which the sender is to show; empty: none

    @property
    def shown(self) -> str:
        """Its addresses, for logs."""
        return shown(self.addresses)


def shown(addresses: Sequence[tuple[str, int]]) -> str:
    """Return addresses as text."""
    return " ".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)


def encode_target(target: Target) -> str:
    """Return the argument of TARGET."""
    told = {
        "addresses": target.addresses,
        "key": target.key,
        "ticket": [target.ticket.id.hex(), target.ticket.key.hex()],
        **({"pem": target.pem} if target.pem else {}),
    }
    return json.dumps(told, separators=(",", ":"))


def parse_target(text: str) -> Target:
    """Read the argument of TARGET; raises ValueError, which does not show it."""
    try:
        told = json.loads(text)
        ticket_id, ticket_key = told["ticket"]
        target = Target(
            tuple((_address(host), port) for host, port in told["addresses"]),
            told["key"],
            Ticket(_hex(_ID, ticket_id), _hex(_SECRET, ticket_key)),
            told.get("pem", ""),
        )
        is_key = _KEY.fullmatch(target.key) is not None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError("not a target") from None
    if not is_key:
        raise ValueError("not a target: its key")
    if not 0 < len(target.addresses) <= MOST_ADDRESSES or not all(
        _is_port(each[1]) for each in target.addresses
    ):
        raise ValueError("not a target: its addresses")
    if not isinstance(target.pem, str) or not target.pem.isascii() or len(target.pem) > _LONGEST_PEM:
        raise ValueError("not a target: its certificate")
    return target


def _address(host: str) -> str:
    if not isinstance(host, str) or "%" in host:  # numbers, and links that only one host knows
        raise ValueError("not an address")
    return str(ipaddress.ip_address(host))


def _hex(form: "re.Pattern[str]", text: str) -> bytes:
    if not form.fullmatch(text):
        raise ValueError("not hexadecimal digits")
    return bytes.fromhex(text)


def _is_port(port: object) -> bool:
    return isinstance(port, int) and not isinstance(port, bool) and 0 < port <= _LARGEST_PORT
