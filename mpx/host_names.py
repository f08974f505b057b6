"""Names of hosts with letters beyond ASCII, as the domain name system has them (xn--). Pure."""

import re

from mpx.errors import UsageError
from mpx.text import quoted

# Those that IDNA 2003 (of Python, and getaddrinfo) and IDNA 2008 (of browsers and registries) read as
# different hosts: sharp s, final sigma, and two joiners of width zero.
_READ_DIFFERENTLY = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")


def check_unambiguous(host: str) -> None:
    """Raise UsageError for a name that means another host to others, which may have another owner."""
    if found := _READ_DIFFERENTLY.search(host):
        raise UsageError(
            f"{quoted(host)} has U+{ord(found[0]):04X}, with which older and newer rules (IDNA 2003, 2008) "
            "mean different hosts; write the name as the domain name system has it: xn--..."
        )


def ascii_host(host: str) -> str:
    """Return the name of a host in ASCII; raises UsageError for one that has no such form."""
    if host.isascii():
        return host
    check_unambiguous(host)
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise UsageError(f"{quoted(host)} is no name of a host") from None
