"""Both servers of a copy, and how sessions with them are opened."""

import time
from dataclasses import dataclass, replace

from mpx.endpoints.ftp.secured import CERTIFICATE
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import give_back_session, is_session_wanted, open_session
from mpx.endpoints.ftp.wire import command
from mpx.engine.retry import SessionsFull
from mpx.engine.session_turns import check_admits_both
from mpx.errors import ConnectionLost, Interrupted
from mpx.location import Location

AGAIN_S = 0.1
OURS = ("mpx", "ssh")  # schemes at which mpx serves
MODES = {True: command("MODE", "E"), False: command("MODE", "S")}
MARKERS = (command("TREV", "RESTART", 1), command("TREV", "PERF", 1))
MARKER_S, FINE_MARKER_S = 1.0, 0.2  # between two markers: of servers that take whole seconds, and of ours


@dataclass(frozen=True, slots=True)
class ServerPair:
    """The servers that have the source and the destination."""

    source: Location
    destination: Location
    source_options: SessionOptions
    destination_options: SessionOptions
    mode_e: bool  # the destination receives in MODE E
    parts: bool  # of files can be sent and stored

    @property
    def hosts(self) -> str:
        """Both, as shown to people."""
        return f"{self.source.host} and {self.destination.host}"

    @property
    def shares_blocks(self) -> bool:
        """Whether the sender shares each transfer over connections that stay, and whose number may change.

        That is what servers of ours do; others have so many connections and no more, and large blocks.
        """
        return self.mode_e and self.destination.scheme in OURS

    @property
    def marker_s(self) -> float:
        """How long nothing may be told of what has come."""
        return FINE_MARKER_S if self.shares_blocks else MARKER_S

    @property
    def is_session_wanted(self) -> bool:
        """Whether others wait for a session with one of them."""
        return is_session_wanted(self.source_options) or is_session_wanted(self.destination_options)

    def for_worker(self, number: int) -> "ServerPair":
        """Return it for a worker of that number: one waits for its turn, as one is enough."""
        waits = number == 0
        return replace(
            self,
            source_options=replace(self.source_options, waits_for_turn=waits),
            destination_options=replace(self.destination_options, waits_for_turn=waits),
        )

    def _wait(self) -> None:
        """Wait some time before both sessions are asked for again; raises Interrupted when stopped.

        By the clock: that a server admits a session again is told by nobody.
        """
        time.sleep(AGAIN_S)
        if self.destination_options.stop():
            raise Interrupted

    def open_sessions(self) -> tuple[ClientSession, ClientSession]:
        """Return a session with each, in the mode that data go in.

        The source's is opened first, as whoever needs both does. Raises ConnectionLost, and as open_session.
        """
        first = (MODES[self.mode_e],)
        then = (MODES[self.mode_e], *(MARKERS if self.mode_e else ()))
        if self.shares_blocks:  # one that refuses this keeps to the others
            then = (*then, command("TREV", "RESTART", FINE_MARKER_S))
        since_s = time.monotonic()
        while True:
            sender = open_session(self.source, self.source_options, first)
            try:
                receiver = open_session(
                    self.destination, replace(self.destination_options, waits_for_turn=False), then
                )
            except SessionsFull:
                give_back_session(sender)  # who waits for it may have the other
                if not self.destination_options.waits_for_turn:
                    raise
                # Who has one and does not use it learns that it is wanted only from who waits for it.
                give_back_session(open_session(self.destination, self.destination_options))
                pools = self.source_options.pool, self.destination_options.pool
                check_admits_both(*pools, self.source.host, since_s, self.source_options.timeout_s)
                self._wait()
                continue
            except BaseException:
                give_back_session(sender)
                raise
            try:
                turn_to(sender, first)
                turn_to(receiver, then)
            except BaseException:
                sender.close()
                receiver.close()
                raise
            if _show_the_same(sender, receiver):
                return sender, receiver


def turn_to(session: ClientSession, opening: tuple[bytes, ...]) -> None:
    """Have a session use a mode, the first of `opening`; raises ConnectionLost where that is refused."""
    mode, *_ = session.pipeline(opening)
    if not mode.is_ok:
        raise ConnectionLost(f"{session.peer} refuses {opening[0].decode('ascii').strip()}: {mode.reason}")


def _show_the_same(sender: ClientSession, receiver: ClientSession) -> bool:
    """Tell whether the data connections of both show one identity; else one of them is closed.

    One that was opened before it was known that the other server takes no certificate (DCSC).
    """
    shown = [each.security.data_identity if each.security else "" for each in (sender, receiver)]
    if shown[0] == shown[1] or "" in shown:
        return True
    for session, identity in zip((sender, receiver), shown, strict=True):
        if identity == CERTIFICATE:
            session.close()
        else:
            give_back_session(session)
    return False
