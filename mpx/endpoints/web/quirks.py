"""What a WebDAV server does otherwise than RFC 4918 has it, as far as it can be told by its name."""

from dataclasses import dataclass, field

from mpx.endpoints.web.reply import Reply

_XROOTD, _NGINX = "xrootd", "nginx"  # what the header Server of their answers begins with


@dataclass
class DavQuirks:
    """Learned once for all connections of a copy with one server."""

    plain_destination: bool = False  # it takes the Destination of MOVE as it stands, without decoding it
    proven_names: set[bool] = field(default_factory=set)  # it was seen to rename to some with, without, a %
    hides_new: bool = False  # it says that it has made a folder which was there before (201, not 405)
    dates_files: bool = False  # it gives a file the time that is the Date of the PUT
    keeps_times: bool | None = None  # and it was seen to do so; None: nobody has looked


def quirks_of(reply: Reply) -> DavQuirks:
    """Return what is known of the server that has sent an answer."""
    name = reply.header("Server").lower()
    is_xrootd = name.startswith(_XROOTD)
    dates_files = name.startswith(_NGINX) and bool(reply.header("DAV"))  # unless it stands before another
    return DavQuirks(plain_destination=is_xrootd, hides_new=is_xrootd, dates_files=dates_files)
