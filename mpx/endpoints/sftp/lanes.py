"""What sessions of SFTP with one host are had from: an ssh leads there, or a program of ours reaches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mpx.endpoints.sftp.session import Request, SftpSession


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """How a session is opened: time-outs, whom to ask whether to stop, whether to wait for a turn.

    `while_waiting`, for a turn, is called now and then. `moves_data`: so that a connection of its own is
    worth a login. `ahead`: questions that a new session of a program asks with its login.
    """

    connect_timeout_s: float
    timeout_s: float
    stop: Callable[[], bool]
    waits_for_turn: bool = True
    moves_data: bool = False
    while_waiting: Callable[[], None] = lambda: None
    ahead: tuple[Request, ...] = ()


class SftpLanes(Protocol):
    """The sessions of one copy with one host, no more of them than it admits. For any thread."""

    name: str  # of the host, as shown to people
    begins_in: str  # see SftpSession
    least_window_bytes: int  # that a session has under way: as much is held between it and its server
    limit: int | None  # sessions that it admits, as far as it is known

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a session, so that whoever does not need one should give it back."""
        ...

    @property
    def is_single(self) -> bool:
        """Whether the host admits one session at a time, as far as it is known."""
        ...

    @property
    def takes_turns(self) -> bool:
        """See SharedConnections."""
        ...

    @property
    def server_url(self) -> str:
        """See SharedConnections."""
        ...

    def open(self, options: LaneOptions, /) -> SftpSession:
        """Return a session: one that was given back, else a new one.

        Raises as SftpSession.begin, SessionsFull where the options say that nobody waits for a turn,
        Interrupted.
        """
        ...

    def give_back(self, lane: SftpSession, /) -> None:
        """Take a session back from who does not need it now; all its requests are answered."""
        ...

    def close(self) -> None:
        """See SharedConnections."""
        ...
