"""The logins of one copy at one host: the first may ask the user for something, the others never do.

The first login is shared, so that one password is enough. Further connections carry more than further
sessions in one, so they are made where a login asks for nothing (keys, an agent); where one would, or once
that is refused, all sessions go through the shared connection, whose socket is in a folder that only the user
can enter, or where the settings of the user's ssh have it. A session that is meant for it never logs in by
itself, as ssh does unasked where the connection is gone or takes no more: that would be a login that fails.

Imports little, as process.py.
"""

import subprocess
import threading

from mpx.endpoints.ssh.command_line import arguments
from mpx.endpoints.ssh.login_record import has_logged_in, needs_somebody
from mpx.errors import AuthenticationError, ConnectionLost, MpxError
from mpx.files.socket_folder import SocketFolder, new_socket_folder
from mpx.location import Location

_SETTINGS_S = 10.0
_SHARES = ("auto", "autoask", "yes", "ask", "true")
_PERSIST_S = 30  # between the end of a first session and the begin of the next


class LoginLost(ConnectionLost):
    """The connection is lost, and another login would ask the user once more."""

    may_retry = False


class SshLogin:
    """For any thread, but for `share`, which comes first, and `close`, which comes last."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._folder: SocketFolder | None = None
        self._control_path: str | None = None  # None: as the settings of the user have it
        self._users_path = ""  # of the user's shared connection
        self._is_shared = False
        self._ends_at_once = False  # the user's shared connection, with its first session
        self._adds_to_agent = False  # the user's ssh, so that a key that was unlocked asks for nothing more
        self._was_made = False  # so the user is asked for nothing any more
        self.host = location.host  # as ssh knows it
        # Once more, without asking the user; set by who sees that refused. None: not known yet, and not to be
        # tried by several at once.
        self.may_log_in: bool | None = None
        self._asking = threading.Lock()  # of `share`

    @property
    def name(self) -> str:
        """The user and the host, as people write them."""
        user = f"{self._location.user}@" if self._location.user else ""
        return f"{user}{self._location.host}"

    def share(self) -> None:
        """Find out, once, by which connection sessions are shared: the user's where there is one."""
        with self._asking:
            if self._is_shared:
                return
            self._is_shared = True
            told = _settings(self._location)
            self.host = told.get("hostname", self._location.host)
            self._adds_to_agent = told.get("addkeystoagent", "no") not in ("no", "false")
            path = told.get("controlpath", "none")
            if path != "none" and told.get("controlmaster", "no") in _SHARES:
                self._users_path = path
                self._ends_at_once = told.get("controlpersist", "no") == "no"
                return
            if path != "none" and self._is_up(None):
                self._users_path = path
                return
            self._folder = new_socket_folder("mpx-ssh-")
            self._control_path = f"{self._folder.path}/c" if self._folder else None

    @property
    def is_up(self) -> bool:
        """Whether the shared connection is there."""
        return bool(self._folder or self._users_path) and self._is_up(self._control_path)

    def first(self, *, persists: bool = False) -> list[str]:
        """Return the words of an ssh whose connection others share, and that may ask the user.

        Not for a second time: what the user was asked for is asked once in a copy. `persists`: some seconds
        longer than its own session, so that another takes its place.
        """
        words = arguments(
            self._location,
            self._control_path,
            batch=self._was_made,
            persist_s=_PERSIST_S if persists else 0,
            tells=True,
        )
        if persists and self._ends_at_once:
            return [words[0], f"-oControlPersist={_PERSIST_S}", *words[1:]]
        return words

    def check(self) -> None:
        """Raise LoginLost where another login of `first` cannot be let in, as nobody is asked any more."""
        if self._was_made and self.may_log_in is False and not self.is_up:
            raise self._lost()

    def passed(self, told: str, *, is_in: bool) -> None:
        """Take what an ssh of `first` said; `is_in`: something at the other end has answered through it."""
        if not (is_in or has_logged_in(told)):
            return
        self._was_made = True
        needs = needs_somebody(told)
        if self.may_log_in is None and needs is not None and not (needs and self._adds_to_agent):
            self.may_log_in = not needs

    def refused(self, error: MpxError) -> MpxError:
        """Return what it means that an ssh of `first` has failed."""
        if isinstance(error, AuthenticationError) and self._was_made:
            self.may_log_in = False
            return self._lost()
        return error

    def _lost(self) -> LoginLost:
        return LoginLost(
            f"the connection to {self.name} is lost, and to log in again somebody would have to type; copy "
            "the same SRC to the same DST again to continue"
        )

    def shared(self) -> list[str]:
        """Return the words of an ssh in the shared connection."""
        path = self._control_path
        if self._users_path:  # as it is told, all is expanded in it
            path = self._users_path.replace("%", "%%")
        return arguments(self._location, path, batch=True, joins=path is not None)

    def alone(self) -> list[str]:
        """Return the words of an ssh with a connection of its own, which asks the user nothing."""
        return arguments(self._location, "none", batch=True)

    def close(self) -> None:
        """End the shared connection, where it is not the user's."""
        if not self._folder:
            return
        words = arguments(self._location, self._control_path)
        _done([words[0], "-Oexit", *words[1:]])
        self._folder.remove()
        self._folder = None

    def _is_up(self, control_path: str | None) -> bool:
        words = arguments(self._location, control_path)
        done = _done([words[0], "-Ocheck", *words[1:]])
        return done is not None and done.returncode == 0


def _done(words: list[str]) -> "subprocess.CompletedProcess[str] | None":
    """Run an ssh that only tells or tidies up; return how it ended, None where it cannot be run."""
    try:
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SETTINGS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _settings(location: Location) -> dict[str, str]:
    """Return the settings of the user's ssh for a host, as far as they can be had."""
    words = arguments(location, None)
    done = _done([words[0], "-G", *words[1:]])
    pairs = (line.partition(" ") for line in done.stdout.splitlines()) if done else ()
    return {name: value for name, _, value in pairs}
