"""Tokens that let into `mpx serve`: `mpx1.KEY.SECRET`, which names the server's key and says who we are.

KEY is the name of the server's public key (SHA-256, URL-safe base64), so that a first contact is no leap of
faith; empty where the server has a certificate of a certificate authority that this host trusts.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpx.errors import AuthenticationError, UsageError
from mpx.location import Location
from mpx.text import quoted

PREFIX = "mpx1"
SECRET_BYTES = 32
_NAME = r"[A-Za-z0-9_-]{43}"  # 256 bits in URL-safe base64
_TOKEN = re.compile(rf"{PREFIX}\.({_NAME}|)\.({_NAME})", re.ASCII)
_KEY = re.compile(_NAME, re.ASCII)
_LARGEST_BYTES = 4096


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """What was handed over. `repr` does not show it, `text` is the secret itself."""

    key: str  # of the server; empty: whichever a certificate authority vouches for
    secret: str

    @property
    def text(self) -> str:
        """As it is handed over."""
        return f"{PREFIX}.{self.key}.{self.secret}"


def parse_token(text: str, where: str) -> Token:
    """Read a token; raises UsageError, which names where it was found and does not show it."""
    found = _TOKEN.fullmatch(text.strip())
    if not found:
        raise UsageError(
            f"what {where} holds is not a token: it is to read {PREFIX}.KEY.SECRET, as `mpx token create` "
            "prints it"
        )
    return Token(found.group(1), found.group(2))


def token_for(location: Location, environment: Mapping[str, str] = os.environ) -> Token:
    """Return the token for a server: of MPX_TOKEN, of the file MPX_TOKEN_FILE, or of the file for its host.

    Raises AuthenticationError where there is none, UsageError for a file that others may read.
    """
    if text := environment.get("MPX_TOKEN"):
        return parse_token(text, "MPX_TOKEN")
    if name := environment.get("MPX_TOKEN_FILE"):
        try:
            return parse_token(_secret_file(Path(name)), f"the file {quoted(name)}")
        except FileNotFoundError:
            raise UsageError(f"there is no file {quoted(name)}, which MPX_TOKEN_FILE names") from None
    path = saved_file(location, "token")
    try:
        return parse_token(_secret_file(path), f"the file {path}")
    except FileNotFoundError:
        raise AuthenticationError(
            f"{location.host} lets in who has a token: ask its operator for one (mpx token create), then run "
            f"mpx token save {place(location)}, or set MPX_TOKEN or MPX_TOKEN_FILE"
        ) from None


def accepted_key(location: Location, key: str) -> str:
    """Return the key that `mpx token accept` took for a server in the place of `key`; empty for none."""
    try:
        old, _, new = saved_file(location, "key").read_text("ascii").strip().rpartition(" ")
    except (OSError, UnicodeError):
        return ""
    return new if old == key and is_key(new) else ""


def is_key(text: str) -> bool:
    """Tell whether a text is the name of a key."""
    return _KEY.fullmatch(text) is not None


def place(location: Location) -> str:
    """Return how the server of a location is named on the command line."""
    return f"mpx://{f'[{location.host}]' if ':' in location.host else location.host}:{location.port}"


def saved_file(location: Location, kind: str) -> Path:
    """Return the file that holds the `token` or the accepted `key` of a server; it may not be there."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        base = Path(named) if named.startswith("/") else Path.home() / ".config"
    except RuntimeError:
        raise UsageError("no home folder is known, where tokens are saved; set MPX_TOKEN_FILE") from None
    host = re.sub(r"[^A-Za-z0-9.:_-]", "_", location.host.lower())
    return base / "mpx" / "servers" / f"{host}_{location.port}.{kind}"


def save(path: Path, text: str) -> None:
    """Write what only we may read, in the place of what was there; raises UsageError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{text}\n")
        new.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _secret_file(path: Path) -> str:
    """Read a file that holds a secret; raises FileNotFoundError, UsageError where it is not ours alone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read the token in {path}: {error.strerror}") from None
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"cannot read the token in {path}: not a regular file")
        if about.st_mode & 0o077 or about.st_uid not in (os.geteuid(), 0):
            raise UsageError(f"{path} holds a token and is not yours alone; chmod 600 {path}")
        return file.read(_LARGEST_BYTES).decode("ascii", "replace")
