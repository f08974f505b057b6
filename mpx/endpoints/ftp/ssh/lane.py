"""A connection that goes through ssh: for control, and for data until direct ones answer."""

import contextlib
import errno
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mpx.endpoints.ssh.process import CommandEnded, SshProcess

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_READ_BYTES = 65536
_ENDS_S = 60.0
_ENDS_SESSION = b"ABOR\r\nQUIT\r\n"


class LaneSocket(socket.socket):
    """One end of a pair, the other end of which an ssh has as its input and output."""

    def __init__(
        self,
        end: socket.socket,
        is_needless: Callable[[], bool],
        closed: Callable[[], None],
        has_ended_well: Callable[[], bool],
        heard: bytes = b"",
    ) -> None:
        """Takes `end` over. `closed` is called once it is closed. `heard`: what `recv` gives first.

        `has_ended_well` is asked at the end of what comes: else it may be an ssh that was cut.
        """
        super().__init__(fileno=end.detach())
        self._is_needless = is_needless
        self._tell_closed = closed
        self._has_ended_well = has_ended_well
        self._is_cut = False
        self._heard = heard

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """See socket.recv; raises ConnectionResetError where the end is none."""
        if self._heard:
            found, self._heard = self._heard[:bufsize], self._heard[bufsize:]
            return found
        data = super().recv(bufsize, flags)
        if not data and bufsize:
            self._check_end()
        return data

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0) -> int:
        """See recv."""
        size = super().recv_into(buffer, nbytes, flags)
        if not size:
            self._check_end()
        return size

    def _check_end(self) -> None:
        if self._is_cut or not self._has_ended_well():
            raise ConnectionResetError(errno.ECONNRESET, "its ssh has ended before all had come")

    def shutdown(self, how: int, /) -> None:
        """See socket.shutdown."""
        self._is_cut = self._is_cut or how == socket.SHUT_RDWR
        super().shutdown(how)

    @property
    def is_worn(self) -> bool:
        """Whether a direct connection could take its place."""
        return self._is_needless()

    def close(self) -> None:
        """Close it, and tell so."""
        super().close()
        tell, self._tell_closed = self._tell_closed, _nothing
        tell()


class Lanes:
    """The ssh sessions that one server is reached through, until they have sent what they were given."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[SshProcess] = []

    @property
    def are_alive(self) -> bool:
        """Whether one of them has not ended."""
        with self._lock:
            return not all(process.has_ended for process in self._running)

    def begun(
        self,
        process: SshProcess,
        begin: Callable[[SshProcess], bytes],
        is_needless: Callable[[], bool] = lambda: False,
    ) -> LaneSocket:
        """Return a connection through an ssh once `begin` is done with it; raises as that.

        It returns what it has heard too much.
        """
        with self._lock:
            self._running.append(process)
        try:
            heard = begin(process)
        except BaseException:
            self._end(process)
            raise
        end, well = partial(self._end, process), process.has_ended_well
        return LaneSocket(process.socket, is_needless, end, well, heard)

    def close(self) -> None:
        """End them."""
        with self._lock:
            running, self._running = self._running, []
        for process in running:
            process.close()

    def _end(self, process: SshProcess) -> None:
        """Have one end in its own time: it may still have to send what it was given."""
        with self._lock:
            if process not in self._running:
                return
            self._running.remove(process)
        threading.Thread(target=process.close, args=(_ENDS_S,), name="mpx-ssh-end", daemon=True).start()


class FirstSessionSocket(socket.socket):
    """That of the first session; its server may end before it has said a word, as it loads meanwhile."""

    def __init__(self, end: socket.socket, process: SshProcess) -> None:
        """Takes `end` over."""
        super().__init__(fileno=end.detach())
        self._process = process
        self._is_to_tell = True

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """See socket.recv; raises CommandEnded where the server has ended and said nothing."""
        data = super().recv(bufsize, flags)
        if not data and self._is_to_tell:
            self._tell()
        self._is_to_tell = False
        return data

    def _tell(self) -> None:
        why = None
        with contextlib.suppress(ValueError, OSError):  # it was closed meanwhile
            why = self._process.ended()
        if isinstance(why, CommandEnded):
            raise why

    def shutdown(self, how: int, /) -> None:
        """See socket.shutdown."""
        self._is_to_tell = False
        super().shutdown(how)


def first_session(process: SshProcess) -> FirstSessionSocket:
    """Return a socket for the first session of a server that lives as long as that of `process` is open.

    Whoever cuts that session is not to end the server, which others use.
    """
    ours, theirs = socket.socketpair()
    for run in (_pass_up, _pass_down):
        words = theirs, process.socket
        threading.Thread(target=run, args=words, name="mpx-first-session", daemon=True).start()
    return FirstSessionSocket(ours, process)


def _pass_up(session: socket.socket, through: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := session.recv(_READ_BYTES):
            through.sendall(data)
    with contextlib.suppress(OSError):
        through.sendall(_ENDS_SESSION)


def _pass_down(session: socket.socket, through: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := through.recv(_READ_BYTES):
            with contextlib.suppress(OSError):  # it may have been cut; then nobody wants what comes
                session.sendall(data)
    with contextlib.suppress(OSError):
        session.shutdown(socket.SHUT_RDWR)  # the other thread holds it
    session.close()


def _nothing() -> None:
    """Do nothing."""
