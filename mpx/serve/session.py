"""One client: its login, its place in the tree, its settings, and the loop that does its commands.

Commands are done strictly in order, each to its end before the next is read, as GridFTP needs.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mpx.endpoints.ftp.extensions.dialing import NO_FOLDER, TOKEN_USER
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.endpoints.ftp.extensions.third_party import Target
from mpx.endpoints.ftp.wire import reply_line
from mpx.errors import UsageError
from mpx.serve import admission, audit
from mpx.serve.admission import Room
from mpx.serve.ahead import Ahead
from mpx.serve.audit import Audit
from mpx.serve.buffers import ConnectionBudget
from mpx.serve.control import Control, ControlClosed
from mpx.serve.data import DataChannel
from mpx.serve.other_server import OtherServer
from mpx.serve.replies import DataChannelError, RefusalReply, reply_for
from mpx.serve.rights import TokenRights, Tokens
from mpx.serve.root import Root, join
from mpx.serve.settings import Settings
from mpx.serve.tickets import Tickets
from mpx.serve.turns import Share, Turn, Turns
from mpx.text import shown

_COMMANDS_OF_A_TURN = 8
_HTTP = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"))

_SECRET = frozenset(("PASS", "DATA", "TARGET"))  # what they say and are answered is not logged
_REFUSED_AFTER_S = 1.0
LOOK_S = 1.0  # how often it is looked whether a token still holds

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a server waits, in seconds, and for how many it has room at a time."""

    idle_s: float = 600.0  # for a command
    login_s: float = 60.0  # from the connection to the login, whatever is said meanwhile
    stall_s: float = 120.0  # for a first data connection, and for a transfer in which nothing moves
    room: Room = field(default_factory=Room)
    congestion: tuple[str, ...] | None = None  # what clients may have us send with; None: what all users may
    third_party: bool = True  # inside TLS: send to other servers that clients name


@dataclass(frozen=True, slots=True)
class Access:
    """What a server inside TLS knows of its clients."""

    tokens: Tokens
    tickets: Tickets
    audit: Audit


@dataclass(frozen=True, slots=True)
class Command:
    """How one command is done: a function from session and argument to the reply."""

    run: "Callable[[Session, str], bytes]"
    argument: bool = False  # it needs one
    login: bool = True  # only after login
    writes: bool = False  # refused by a read-only server


class Session:
    """The state of one client; used by its own thread, but for `stop`."""

    def __init__(
        self,
        control: Control,
        root: Root,
        *,
        writable: bool,
        limits: Limits,
        admit: "Callable[[Session], None]",
        admit_to_echo: "Callable[[Session], None]",
        budget: ConnectionBudget,
        turns: Turns,
        access: Access | None = None,
        home: str = "/",
    ) -> None:
        """`access`: inside TLS, where a token lets in; else anybody is anonymous. `home`: where it begins."""
        self.control = control
        self.access = access
        self.grant: TokenRights | None = None  # of the token
        self.turns = turns
        self.share = Share()  # of the turns
        self.turn = Turn(turns, self.share)  # to do commands; whatever may take long ends it first
        self.root = root
        self.writable = writable
        self.why_read_only = "This server is read-only"
        self.limits = limits
        self.echo: EchoPlace | None = None  # where this client's probes are sent back, once it has asked
        self.party = admission.party(control.peer)
        self.since_s = time.monotonic()  # when it was connected, or did its last command
        self.busy = False
        self.gave_way = False
        self._admit = admit
        self._admit_to_echo = admit_to_echo
        tickets = access.tickets if access else None
        self.channel = DataChannel(control.local, control.peer, control.family, budget, tickets)
        self.ahead = Ahead()
        self.settings = Settings(congestions=limits.congestion, kernels=control.congestion)
        self.directory = home
        self.user = ""
        self.logged_in = False
        self.other_server: OtherServer | Target | None = None  # that the command at hand sends to
        self._look_s = 0.0  # when the token is looked at next

    def run(self, commands: dict[str, Command]) -> None:
        """Greet, then do commands until the client leaves, is idle for too long, or breaks a limit."""
        try:
            self.control.send(b"220 mpx serve, GridFTP, ready.\r\n")
            while True:
                self.share.pause()
                line = self.control.next_line(self.limits.idle_s)
                self.busy = True
                self._do_all(line, commands)
        except ControlClosed as error:
            _log.info("%s: session ends: %s", self.control.peer, error)
            if error.farewell:
                self.control.say_farewell(reply_line(*error.farewell))
        finally:
            self.drop_ahead()
            with self.turn:
                self.channel.close()
                self.control.close()
                if self.grant:
                    self.root.close()

    def log_in_with(self, secret: str) -> None:
        """Let in who has a token; raises ControlClosed for others, after a while that makes guessing slow."""
        assert self.access
        with self._readable_tokens():
            grant = self.access.tokens.find(secret) if self.user == TOKEN_USER else None
        if grant is None:
            self.turn.end()
            self.access.audit.log("login refused", self.control.peer, "")
            time.sleep(_REFUSED_AFTER_S)
            raise ControlClosed("no valid token", (530, "Login incorrect: no valid token for this server."))
        try:
            root = Root(grant.folder, within=self.root)
        except OSError as error:
            raise ControlClosed(
                f"the folder {grant.folder} of token {grant.id}: {error.strerror}",
                (530, f"Login failed: {NO_FOLDER}."),
            ) from None
        self.root, self.grant = root, grant
        if self.writable and not grant.writable:
            self.writable, self.why_read_only = False, "This token only reads; one with --write is needed"
        self.access.audit.log("login", self.control.peer, grant.id)
        self.log_in()

    @contextmanager
    def _readable_tokens(self) -> Iterator[None]:
        """Raise ControlClosed where the tokens cannot be read, which the log says."""
        try:
            yield
        except UsageError as error:
            _log.error("%s", error)
            raise ControlClosed(
                "no tokens", (421, "The tokens of this server cannot be read; its operator has to look.")
            ) from None

    def check_rights(self) -> None:
        """Raise ControlClosed once the token was revoked or has expired; looks once a second."""
        if self.grant and self.access and time.monotonic() >= self._look_s:
            self._look_s = time.monotonic() + LOOK_S
            with self._readable_tokens():
                holds = self.access.tokens.still_holds(self.grant)
            if not holds:
                raise ControlClosed("the token holds no more", (421, "The token was revoked or has expired."))

    def log_in(self) -> None:
        """Let the client in; raises ControlClosed if there is no room."""
        self._admit(self)
        self.control.admit()

    def echo_place(self) -> EchoPlace | None:
        """Return where this client's probes are sent back from now on."""
        if not self.echo:
            self._admit_to_echo(self)
        return self.echo

    def give_way(self) -> None:
        """End the session, from another thread, for one that has more right to be here."""
        self.gave_way = True
        self.control.dismiss(reply_line(421, "Too many sessions: this one gives way."))

    def stop(self) -> None:
        """End the session, and whatever it is doing, from another thread."""
        self.control.shutdown()

    def path(self, name: str) -> str:
        """Return the absolute name of an argument; raises RefusalReply if it names nothing."""
        if not name:
            raise RefusalReply(501, "A name is needed.")
        return join(self.directory, name)

    def _do_all(self, line: str, commands: dict[str, Command]) -> None:
        """Do a command and those that have arrived behind it, some in each turn."""
        done = 0
        try:
            while True:
                self.turn.take()
                self.control.queue(self._answer(line, commands))
                done += 1
                if not self.control.holds_line():
                    if self.logged_in:
                        self.since_s = time.monotonic()
                    self.busy = False  # before the client knows that all is done
                    self.settle()
                    return
                if done % _COMMANDS_OF_A_TURN == 0:
                    self.settle()
                line = self.control.next_line(self.limits.idle_s)
        finally:
            self.turn.end()

    def drop_ahead(self) -> None:
        """End the retrieves that have begun before their turn. Some of them may have been sent already."""
        for verb, argument in self.ahead.drop():
            self._tell_audit(verb, argument, 0)

    def settle(self) -> None:
        """Have others go on and the replies so far leave, before something that may take long."""
        self.turn.end()
        self.control.flush()

    def _answer(self, line: str, commands: dict[str, Command]) -> bytes:
        verb, _, argument = line.lstrip(" ").partition(" ")
        verb = verb.upper()
        if "\r" in line or "\0" in line:
            return b"501 A carriage return or NUL cannot be part of a command.\r\n"
        if verb in _HTTP:
            raise ControlClosed("a browser, or a page in one that tries to speak FTP through it")
        self.other_server = self.channel.other_server if verb in audit.SENDING else None
        command = commands.get(verb)
        if not command:
            return reply_line(500, f"{verb[:20]!a}: command not understood.")
        if command.login and not self.logged_in:
            return reply_line(530, f"Log in with USER {TOKEN_USER if self.access else 'anonymous'} and PASS.")
        self.check_rights()
        if command.argument and not argument.strip():
            return reply_line(501, f"{verb} needs an argument.")
        try:
            if command.writes and not self.writable:
                raise PermissionError(30, self.why_read_only)
            reply = command.run(self, argument)
        except ControlClosed:
            self._tell_audit(verb, argument, 0)
            raise
        except (RefusalReply, DataChannelError, OSError) as error:
            reply = reply_for(error, f"{verb} failed")
        except Exception as error:
            _log.exception("%s: %s failed", self.control.peer, verb)
            reply = reply_for(error, f"{verb} failed")
        if verb not in _SECRET:
            words = reply.partition(b"\r\n")[0].decode("ascii", "replace")
            _log.info("%s: %s %r: %s", self.control.peer, verb, argument, shown(words))
        self._tell_audit(verb, argument, int(reply[:3]))
        return reply

    def _tell_audit(self, verb: str, argument: str, code: int) -> None:
        """Log a command; code 0: it has ended before its reply."""
        if self.access and self.grant and verb in audit.WORTH:
            more: dict[str, str | int] = {} if verb in _SECRET else {"argument": argument}
            if more and self.directory != "/":
                more["in"] = self.directory  # where names that are relative begin
            if self.other_server:
                more["to"] = self.other_server.shown
            self.access.audit.log(verb, self.control.peer, self.grant.id, **more, reply=code)
