"""Commands that say where data goes, and those that move it."""

import os
import stat
from collections.abc import Callable, Generator
from contextlib import closing
from itertools import chain

from mpx.endpoints.ftp.extensions import dialing, sink, third_party
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.wire import format_host_port, parse_extended_address, parse_host_port, reply_line
from mpx.engine.holes import lost_from
from mpx.engine.ranges import RangeSet
from mpx.serve import arguments, listing, retrieves
from mpx.serve.moving import first_missing, new_transfer, run_stream, send
from mpx.serve.progress import TransferCounters
from mpx.serve.receive import BlockReceiver, StreamReceiver
from mpx.serve.replies import RefusalReply
from mpx.serve.send import LineSender
from mpx.serve.session import Command, Session
from mpx.serve.turns import Turn, in_turns

_DONE = b"226 Transfer Complete.\r\n"

# --- where data goes -----------------------------------------------------------------------------


def _passive(session: Session, _: str) -> bytes:
    _only_ipv4(session, "EPSV")
    return reply_line(227, f"Entering Passive Mode ({format_host_port(session.channel.listen())})")


def _extended_passive(session: Session, argument: str) -> bytes:
    if argument.strip().upper() == "ALL":
        return b"229 EPSV ALL command successful.\r\n"
    _check_family(session, argument.strip())
    return reply_line(229, f"Entering Extended Passive Mode (|||{session.channel.listen()[1]}|)")


def _striped_passive(session: Session, argument: str) -> bytes:
    _check_family(session, argument.strip())
    host, port = session.channel.listen()
    where = f"|2|{host}|{port}|" if ":" in host else format_host_port((host, port))
    return reply_line(229, "Entering Striped Passive Mode.", where, "End")


def _active(session: Session, argument: str) -> bytes:
    _only_ipv4(session, "EPRT")
    arguments.check_address(argument)
    try:
        address = parse_host_port(argument)
    except ValueError as error:
        raise RefusalReply(501, f"PORT: {error}") from error
    session.channel.connect_to(address)
    return b"200 PORT Command successful.\r\n"


def _extended_active(session: Session, argument: str) -> bytes:
    arguments.check_address(argument)
    try:
        address = parse_extended_address(argument)
    except ValueError as error:
        raise RefusalReply(501, f"EPRT: {error}") from error
    session.channel.connect_to(address)
    return b"200 EPRT Command successful.\r\n"


def _striped_active(session: Session, argument: str) -> bytes:
    # Of several addresses (a striped receiver) the first takes all the data, as with a stock server.
    first = (argument.split() or [""])[0]
    return _extended_active(session, first) if first.startswith("|") else _active(session, first)


def _data(session: Session, argument: str) -> bytes:
    try:
        direction = Direction(argument.strip().upper())
    except ValueError:
        raise RefusalReply(501, "DATA takes UP or DOWN.") from None
    return reply_line(200, session.channel.issue_ticket(direction).text)


def _target(session: Session, argument: str) -> bytes:
    if not session.limits.third_party:
        raise RefusalReply(504, "This server sends to no other servers (--no-third-party).")
    try:
        target = third_party.parse_target(argument)
    except ValueError as error:
        raise RefusalReply(501, f"TARGET: {error}.") from None
    session.other_server = target
    session.channel.send_to(target)
    return b"200 TARGET command successful.\r\n"


def _only_ipv4(session: Session, instead: str) -> None:
    if ":" in session.control.local:
        raise RefusalReply(522, f"This is an IPv6 connection: use {instead}.")


def _check_family(session: Session, family: str) -> None:
    mine = "2" if ":" in session.control.local else "1"
    if family not in ("", mine):
        raise RefusalReply(522, f"Network protocol not supported, use ({mine})")


# --- files ---------------------------------------------------------------------------------------


def _store(session: Session, argument: str) -> bytes:
    return _receive_file(session, argument, 0, truncate=session.settings.restart.size == 0)


def _extended_store(session: Session, argument: str) -> bytes:
    kind, _, rest = argument.partition(" ")
    found = arguments.numbers_and_name(rest, 1)
    if kind.upper() != "A" or not found:
        raise RefusalReply(501, "ESTO takes A, an offset and a name.")
    (offset,), name = found
    return _receive_file(session, name, offset, truncate=False)


def _append(session: Session, argument: str) -> bytes:
    return _receive_file(session, argument, None, truncate=False)


def _receive_file(session: Session, name: str, base: int | None, *, truncate: bool) -> bytes:
    """Store what comes at `base`, or after the end of the file if that is None."""
    settings, channel = session.settings, session.channel
    restart = settings.take_restart()
    channel.check(blocks=settings.blocks, sending=False)
    fd = session.root.open_for_writing(session.path(name), create=True, truncate=truncate)
    try:
        base = os.fstat(fd).st_size if base is None else base
        progress = TransferCounters(keep_ranges=settings.blocks and settings.restart_s > 0)
        channel.begin_receiving()
        if settings.blocks:
            engine = BlockReceiver(fd, base, progress, session.turns, session.share)
            transfer = new_transfer(session, engine, progress)
            transfer.mark(performance_s=settings.performance_s, restart_s=settings.restart_s)
            transfer.run(channel.take_kept())
            first, last = base + progress.first, base + progress.last
        else:
            first = base + first_missing(restart)
            run_stream(session, StreamReceiver(fd, first, progress), progress)
            last = first + progress.moved_bytes
        if last - first == progress.moved_bytes:  # else there may be gaps
            _check_kept(fd, first, last)
    finally:
        os.close(fd)
    return _DONE


def _check_kept(fd: int, first: int, last: int) -> None:
    """Refuse to call a file stored that somebody else has cut meanwhile; what is not lost stays."""
    if (lost := lost_from(fd, first, last)) is not None:
        os.ftruncate(fd, lost)
        raise RefusalReply(426, f"Another program truncated the file to {lost} bytes while it was stored.")


def _sink(session: Session, _: str) -> bytes:
    """Take a stream and throw it away: bursts of `mpx probe --mode active` (docs/extensions.md)."""
    session.settings.take_restart()
    if session.settings.blocks:
        raise RefusalReply(504, f"{sink.VERB} takes a stream: MODE S first.")
    session.channel.check(blocks=False, sending=False)
    fd = os.open(os.devnull, os.O_WRONLY)
    try:
        progress = TransferCounters(keep_ranges=False)
        run_stream(session, StreamReceiver(fd, 0, progress), progress)
    finally:
        os.close(fd)
    return _DONE


# --- listings ------------------------------------------------------------------------------------


def _list(session: Session, argument: str) -> bytes:
    return _send_listing(session, _shown_by_ls(session, argument), listing.long_line)


def _name_list(session: Session, argument: str) -> bytes:
    return _send_listing(session, _shown_by_ls(session, argument), lambda item: listing.in_a_line(item.name))


def _shown_by_ls(session: Session, argument: str) -> Generator[listing.Item, None, None]:
    """Describe what a directory holds, or one file."""
    name = arguments.without_ls_options(argument)
    path = session.path(name or ".")
    if stat.S_ISDIR(session.root.stat(path).st_mode):
        yield from listing.items(session.root, path)
    else:
        yield listing.item(session.root, path, name)


def _machine_list(session: Session, argument: str) -> bytes:
    return _send_facts(session, listing.items(session.root, session.path(argument or ".")))


def _machine_list_tree(session: Session, argument: str) -> bytes:
    return _send_facts(session, listing.tree(session.root, session.path(argument or ".")))


def _send_facts(session: Session, found: Generator[listing.Item, None, None]) -> bytes:
    facts, writable = session.settings.facts, session.writable
    return _send_listing(session, found, lambda item: listing.facts_line(item, facts, writable=writable))


def _send_listing(
    session: Session, found: Generator[listing.Item, None, None], line: Callable[[listing.Item], str]
) -> bytes:
    """Send a listing as it is made; in MODE E it is written to a file without a name first.

    So it is sent there as any other file, in blocks that know where they belong.
    """
    session.settings.take_restart()
    session.channel.check(blocks=session.settings.blocks, sending=True)
    with closing(found):  # now, not when the garbage collector finds the rest of the transfer
        raw = (f"{line(item)}\r\n".encode("utf-8", "surrogateescape") for item in found)
        if not session.settings.blocks:
            first = next(raw, b"")  # what cannot be listed at all is refused before any data
            progress = TransferCounters(keep_ranges=False)
            turn = Turn(session.turns, session.share)
            run_stream(session, LineSender(chain([first], raw), progress, turn), progress)
            return _DONE
        import tempfile

        with tempfile.TemporaryFile() as spool:
            session.settle()
            for some in in_turns(session.turn, raw):
                spool.writelines(some)
                session.check_rights()
                if session.control.interrupted():
                    raise RefusalReply(426, "Listing aborted.")
            spool.flush()
            send(session, spool.fileno(), 0, spool.tell(), RangeSet())
    return _DONE


COMMANDS = {
    "PASV": Command(_passive),
    "EPSV": Command(_extended_passive),
    "SPAS": Command(_striped_passive),
    "PORT": Command(_active, argument=True),
    "EPRT": Command(_extended_active, argument=True),
    "SPOR": Command(_striped_active, argument=True),
    dialing.VERB: Command(_data, argument=True),
    third_party.VERB: Command(_target, argument=True),
    "RETR": Command(retrieves.retrieve, argument=True),
    "ERET": Command(retrieves.extended_retrieve, argument=True),
    "STOR": Command(_store, argument=True, writes=True),
    "ESTO": Command(_extended_store, argument=True, writes=True),
    "APPE": Command(_append, argument=True, writes=True),
    sink.VERB: Command(_sink),
    "LIST": Command(_list),
    "NLST": Command(_name_list),
    "MLSD": Command(_machine_list),
    "MLSR": Command(_machine_list_tree),
}
