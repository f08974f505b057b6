"""What is probed, as the user writes it: a URL, or HOST[:PORT]."""

import ipaddress
import re

from mpx.errors import UsageError
from mpx.location import FTP_PORT, parse_location
from mpx.tcp import Address

_HOST_AND_PORT = re.compile(r"(?:\[([^\[\]]+)\]|([^:/?#\[\]\s@]+))(?::([0-9]{1,5}))?", re.ASCII)
_SCHEME = re.compile(r"(gsi)?ftp://", re.IGNORECASE)


def parse_target(text: str) -> Address:
    """Return host (a name or an address) and TCP port; raises UsageError.

    No login follows, so a gsiftp:// URL is as good as an ftp:// one.
    """
    if found := _SCHEME.match(text):
        location = parse_location(f"ftp://{text[found.end() :]}")
        return location.host, location.port
    if _is_ipv6(text):
        return text, FTP_PORT
    found = _HOST_AND_PORT.fullmatch(text)
    port = int(found.group(3) or FTP_PORT) if found else 0
    if not found or not 0 < port < 65536 or (found.group(1) and not _is_ipv6(found.group(1))):
        raise UsageError(
            f"{text!r} is nothing that can be probed; write ftp://HOST[:PORT]/, HOST or HOST:PORT, "
            "an IPv6 address with a port as [2001:db8::7]:2811"
        )
    return found.group(1) or found.group(2), port


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
