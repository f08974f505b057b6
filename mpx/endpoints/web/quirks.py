"""What a WebDAV server does otherwise than RFC 4918 has it, as far as it can be told by its name."""

from dataclasses import dataclass, field

from mpx.endpoints.web.reply import Reply

_XROOTD = "xrootd"  # 5.5: what its answers begin with, in the header Server


@dataclass
class DavQuirks:
    """Learned once for all connections of a copy with one server."""

    plain_destination: bool = False  # it takes the Destination of MOVE as it stands, without decoding it
    proven_names: set[bool] = field(default_factory=set)  # it was seen to rename to some with, without, a %
    hides_new: bool = False  # it says that it has made a folder which was there before (201, not 405)


def quirks_of(reply: Reply) -> DavQuirks:
    """Return what is known of the server that has sent an answer."""
    is_xrootd = reply.header("Server").lower().startswith(_XROOTD)
    return DavQuirks(plain_destination=is_xrootd, hides_new=is_xrootd)
