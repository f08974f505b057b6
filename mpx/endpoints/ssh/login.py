"""The logins of one copy at one host: the first may ask the user for something, the others never do.

The first login is shared, so that one password is enough. Further connections carry more than further
sessions in one, so each is tried with a login of its own that asks nothing (keys, an agent); once that is
refused all sessions go through the shared connection, whose socket is in a folder that only the user can
enter, or where the settings of the user's ssh have it.

Imports little, as process.py.
"""

import subprocess
import threading

from mpx.endpoints.ssh.command_line import arguments
from mpx.files.socket_folder import new_socket_folder, remove_socket_folder
from mpx.location import Location

_SETTINGS_S = 10.0
_SHARES = ("auto", "autoask", "yes", "ask", "true")
_PERSIST_S = 30  # between the end of a first session and the begin of the next


class SshLogin:
    """For any thread, but for `share`, which comes first, and `close`, which comes last."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._folder = ""
        self._control_path: str | None = None  # None: as the settings of the user have it
        self._is_shared = False
        self._ends_at_once = False  # the user's shared connection, with its first session
        self.host = location.host  # as ssh knows it
        self.may_log_in = True  # once more, without asking the user; set by who sees that refused
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
            if told.get("controlpath", "none") != "none" and told.get("controlmaster", "no") in _SHARES:
                self._ends_at_once = told.get("controlpersist", "no") == "no"
                return
            if told.get("controlpath", "none") != "none" and _is_shared(self._location):
                return
            self._folder = new_socket_folder("mpx-ssh-")
            self._control_path = f"{self._folder}/c" if self._folder else None

    def first(self, *, persists: bool = False) -> list[str]:
        """Return the words of an ssh that may ask the user, and whose connection others share.

        `persists`: some seconds longer than its own session, so that another takes its place.
        """
        words = arguments(self._location, self._control_path, persist_s=_PERSIST_S if persists else 0)
        if persists and self._ends_at_once:
            return [words[0], f"-oControlPersist={_PERSIST_S}", *words[1:]]
        return words

    def shared(self) -> list[str]:
        """Return the words of an ssh in the shared connection."""
        return arguments(self._location, self._control_path, batch=True)

    def alone(self) -> list[str]:
        """Return the words of an ssh with a connection of its own, which asks the user nothing."""
        return arguments(self._location, "none", batch=True)

    def close(self) -> None:
        """End the shared connection, where it is not the user's."""
        if not self._folder:
            return
        words = arguments(self._location, self._control_path)
        _done([words[0], "-Oexit", *words[1:]])
        remove_socket_folder(self._folder)
        self._folder = ""


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


def _is_shared(location: Location) -> bool:
    """Tell whether a connection of the user's is there to be shared."""
    words = arguments(location, None)
    done = _done([words[0], "-Ocheck", *words[1:]])
    return done is not None and done.returncode == 0
