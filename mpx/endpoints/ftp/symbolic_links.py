"""Symbolic links at a Globus server: made by SITE commands, and found where MLSD leaves them out."""

import contextlib
from itertools import islice

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.facts import entry_info
from mpx.endpoints.ftp.listing_transfer import ListingTransfer
from mpx.endpoints.ftp.refusals import reply_error
from mpx.endpoints.ftp.session import Session
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import FileInfo, Kind, partial_name
from mpx.errors import MpxError

_MOST_LINKS = 100_000  # of one folder that a server does not list
_FIRST_HALVES = (1, 3)  # of the commands that make a link
_OF_ITSELF = 10  # lines of MLSR about the folder and the one above it, at most


def make_link(session: Session, full: str, target: str) -> Reply | None:
    """Make a link to the absolute name `target` in the place of `full`; return the refusal, if any."""
    aside = partial_name(full, "link")
    replies = session.pipeline(
        [
            command("DELE", aside),
            command("SITE", "SYMLINKFROM", target),
            command("SITE", "SYMLINKTO", aside),
            command("RNFR", aside),
            command("RNTO", full),
        ]
    )
    for number, reply in enumerate(replies):
        if number and not (reply.is_accepted if number in _FIRST_HALVES else reply.is_ok):
            session.call(command("DELE", aside))
            return reply
    return None


def links_by_mlsr(session: Session, full: str, promised: int, refusal: type[MpxError]) -> dict[str, FileInfo]:
    """Return the links of a folder that a server counts (`promised` entries) and does not list.

    MLSR goes through the whole tree, the folder itself first, so `session` is one that can be cut. Raises
    `refusal`, ConnectionLost, TransferTimeout.
    """
    what = f"{session.peer} cannot list {full}"
    listing = ListingTransfer(session, command("MLSR", full), lambda r: reply_error(r, what, refusal))
    links: dict[str, FileInfo] = {}
    for line in islice(listing.lines(), promised + _OF_ITSELF):
        if len(links) > _MOST_LINKS:
            raise refusal(f"{session.peer} lists too many links to nowhere in {full}")
        with contextlib.suppress(ValueError):
            entry = wire.parse_facts(line)
            if "/" in entry.name:
                break
            if entry_info(entry).kind is Kind.LINK:
                links[entry.name] = entry_info(entry)
    return links
