"""Symbolic links at a Globus server: made by SITE commands, and found where MLSD leaves them out."""

import contextlib
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.facts import entry_info
from mpx.endpoints.ftp.listing_transfer import ListingTransfer
from mpx.endpoints.ftp.refusals import reply_error
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError, PartialFailure
from mpx.files.partial_names import partial_name

_TOGETHER = 200  # names that are asked about at once
_MOST_LINKS = 100_000  # of one folder that a server does not list
_FIRST_HALVES = (1, 3)  # of the commands that make a link
_OF_ITSELF = 10  # lines of MLSR about the folder and the one above it, at most


def make_link(session: ClientSession, full: str, target: str) -> Reply | None:
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


def links_by_mlsr(
    session: ClientSession, full: str, promised: int, listed: int, refusal: type[MpxError]
) -> dict[str, FileInfo]:
    """Return the links of a folder of which a server counts `promised` entries and lists fewer (`listed`).

    MLSR goes through the whole tree, the folder itself first, so `session` is one that can be cut. Raises
    `refusal`, ConnectionLost, TransferTimeout.
    """
    what = f"{session.peer} cannot list {full}"
    listing = ListingTransfer(session, command("MLSR", full), lambda r: reply_error(r, what, refusal))
    links: dict[str, FileInfo] = {}
    most = min(promised, listed + _MOST_LINKS) + _OF_ITSELF
    for line in islice(listing.lines(), most):
        if len(links) > _MOST_LINKS:
            raise refusal(f"{session.peer} lists too many links to nowhere in {full}")
        with contextlib.suppress(ValueError):
            entry = wire.parse_facts(line)
            if "/" in entry.name:
                break
            if entry_info(entry).kind is Kind.LINK:
                links[entry.name] = entry_info(entry)
    return links


def left_out(
    peer: str,
    full: str,
    links: Mapping[str, FileInfo],
    missing: int,
    stats: Callable[[Sequence[str]], Sequence[FileInfo | MpxError | None]],
) -> Iterator[tuple[str, FileInfo | MpxError]]:
    """Yield what a server counts in the folder `full` and does not list, in all `missing` entries.

    Those of its `links` that lead nowhere, as `stats` (see Endpoint) tells; an error stands for all others:
    the server leaves out what it can tell nothing of, as files on a disk that does not answer.
    """
    names = iter(links)
    while some := list(islice(names, _TOGETHER)):
        found = stats([posixpath.join(full, name) for name in some])
        for name, there in zip(some, found, strict=True):
            if there is None:
                missing -= 1
                yield name, links[name]
    if missing > 0:
        yield (
            "",
            PartialFailure(
                f"{peer} counts {missing} more in {full} than it lists; it may be unable to read them"
            ),
        )
