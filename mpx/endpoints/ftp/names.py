"""Names a server can be sent: what the control channel carries, and what a Globus server keeps of them."""

import re
from types import MappingProxyType

from mpx.errors import MpxError, UsageError
from mpx.text import quoted

_UNFIT = MappingProxyType({"\r": "a carriage return", "\n": "a line feed", "\0": "a NUL byte"})
# The Globus server's telnet driver (globus_xio_telnet.c) removes all other bytes from a command.
_SURVIVES_TELNET = re.compile(r"[\x07-\x09\x0b\x0c\x20-\x7e]*")


def check_name(name: str) -> None:
    """Refuse names that the control channel cannot carry.

    Raises UsageError for CR, LF and NUL: a line ends at CR LF, and a stock server silently drops a
    lone LF, so the file would end up under another name.
    """
    if "\r" in name or "\n" in name or "\0" in name:
        what = next(what for char, what in _UNFIT.items() if char in name)
        raise UsageError(f"the name {quoted(name)} contains {what}, which FTP cannot carry; rename it")


def check_globus_name(name: str, peer: str, refusal: type[MpxError] = UsageError) -> None:
    """Raise `refusal` for a name of which a Globus server would drop bytes; `peer`: as it is shown."""
    if not _SURVIVES_TELNET.fullmatch(name):
        raise refusal(
            f"{peer} is a Globus server, and without GSI those silently drop every byte of a name "
            f"that is not printable ASCII; rename {quoted(name)}, or have mpx there"
        )
