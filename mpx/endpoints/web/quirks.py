"""What a WebDAV server does otherwise than RFC 4918 has it, as far as it can be told by its name."""

import re
from dataclasses import dataclass, field

from mpx.endpoints.web.destination_forms import DestinationForms
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.errors import DestinationError

_PLAIN = re.compile("[A-Za-z0-9/._~-]")


@dataclass
class DavQuirks:
    """Learned once for all connections of a copy with one server."""

    plain_destination: bool = False  # it takes the Destination of MOVE as it stands, without decoding it
    forms: DestinationForms = field(default_factory=DestinationForms)  # of a Destination otherwise
    hides_new: bool = False  # it says that it has made a folder which was there before (201, not 405)
    shows_new: bool = False  # it was seen not to do so
    # It ends a connection with most refusals, also that nothing has a name. XRootD 5.5 crashes soon where
    # more was asked behind that.
    ends_at_errors: bool = False
    dates_files: bool = False  # it gives a file the time that is the Date of the PUT
    keeps_times: bool | None = None  # and it was seen to do so; None: nobody has looked
    refuses_parts: bool = False  # of files, or takes each for the whole: nothing is to be tried
    unfit: re.Pattern[str] | None = None  # what is in names that it renames to others than it is asked for
    cuts_at: str = ""  # what in a name ends it, so that it is taken for another one
    is_mapped: bool = False  # it names itself without the first folders of its URL
    lists_plain: bool | None = False  # names as they are, not encoded; None: perhaps, and nobody has looked
    misnames: bool = False  # it was seen to give a file another name, which had no encoded character
    proven: set[str] = field(default_factory=set)  # characters of names that it was seen to rename to

    def why_not_named(self, name: str, url: WebUrl) -> DestinationError | None:
        """Return why nothing is changed that has a name, whose URL this is; None where it may be."""
        if not self.cuts_at or self.cuts_at not in name:
            return None
        what = f"this server takes that for a name which ends before the {self.cuts_at}"
        return DestinationError(f"{url}: {what}; copy to a name without one")

    def unproven(self, name: str) -> set[str]:
        """Return the characters of a name that are encoded and not proven; one stands for all but ASCII.

        And the slash that all begin with, where a proxy maps a folder to the server: that knows nothing of
        the folder, and may make one of that name to give a file the name that we know.
        """
        encoded = {each if each.isascii() else "\x80" for each in name if not _PLAIN.match(each)}
        return (encoded | {"/"} if self.is_mapped else encoded) - self.proven


def quirks_of(reply: HttpReply) -> DavQuirks:
    """Return what is known of the server that has sent an answer."""
    server = reply.header("Server").lower()
    if server.startswith("xrootd"):  # 5.5: of a Destination it cuts off what is no printable ASCII at the end
        unfit = re.compile(r"[\x00-\x1f\x7f?]|[^\x21-\x7e]\Z")
        return DavQuirks(
            plain_destination=True,
            hides_new=True,
            ends_at_errors=True,
            unfit=unfit,
            cuts_at="?",
            refuses_parts=True,
            lists_plain=None,  # XRootD itself does so, and others that stand behind that name need not
        )
    if server.startswith("wsgidav"):  # 4.3: it decodes first, and then looks for a query and the like
        return DavQuirks(unfit=re.compile("[?#;]"), refuses_parts=True)
    # Unless nginx stands before another server, which `keeps_times` shows:
    return DavQuirks(dates_files=server.startswith("nginx"))
