"""What commands that move data have in common: a transfer over the data connections of a session."""

from mpx.engine.ranges import RangeSet
from mpx.serve.progress import TransferCounters
from mpx.serve.send import BlockSender, StreamSender
from mpx.serve.session import Session
from mpx.serve.transfer import Engine, Following, Transfer


def send(
    session: Session,
    fd: int,
    base: int,
    length: int,
    restart: RangeSet,
    following: Following | None = None,
) -> None:
    """Send part of a file; `following`: see Transfer.follow_with."""
    settings, channel = session.settings, session.channel
    if not settings.blocks:
        progress = TransferCounters(keep_ranges=False)
        start = min(first_missing(restart), length)
        run_stream(session, StreamSender(fd, base + start, base + length, progress), progress)
        return
    connections = channel.to_send_over(settings.streams, over_mptcp=settings.over_mptcp)
    if settings.congestion:
        for connection in connections:
            connection.use_congestion(settings.congestion)
    transfer = block_transfer(session, fd, base, restart.missing(0, length), len(connections))
    if following:
        transfer.follow_with(following)
    transfer.run(connections)


def block_transfer(session: Session, fd: int, base: int, todo: RangeSet, streams: int) -> Transfer:
    """Return a transfer that sends what is `todo` of a file, in bytes from `base`, in MODE E."""
    progress = TransferCounters(keep_ranges=False)
    transfer = new_transfer(session, BlockSender(fd, base, todo, streams, progress), progress)
    transfer.mark(performance_s=session.settings.retrieve_marker_s, restart_s=0)
    return transfer


def new_transfer(session: Session, engine: Engine, progress: TransferCounters) -> Transfer:
    """Return a transfer of a session."""
    return Transfer(
        session.control,
        session.channel,
        engine,
        progress,
        session.turn,
        session.limits.stall_s,
        session.check_rights,
    )


def run_stream(session: Session, engine: Engine, progress: TransferCounters) -> None:
    """Run a MODE S transfer; a listener serves just one."""
    channel = session.channel
    if other := channel.other_server:
        other.begin()
    connections = channel.outgoing(1) if channel.connects else []
    new_transfer(session, engine, progress).run(connections)
    if not channel.connects:
        channel.close()


def first_missing(restart: RangeSet) -> int:
    """Return where a stream goes on: after what is there without a gap from the beginning."""
    return next((end for start, end in restart if start == 0), 0)
