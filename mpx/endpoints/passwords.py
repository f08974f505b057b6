"""The user and the password for a server: of the URL, the environment, ~/.netrc."""

import netrc
import os
import stat
from pathlib import Path

from mpx.errors import AuthenticationError, UsageError
from mpx.location import Location

ANONYMOUS = "mpx@"  # the password of who has none
_LARGEST_NETRC_BYTES = 1 << 20
_SHOWN_ONE = ("ftp", "https", "davs")  # schemes of servers that are sent a password
_IN_NO_COMMAND = frozenset("\r\n\0")


def credentials(location: Location) -> tuple[str, str]:
    """Return user and password: from the URL and MPX_PASSWORD, else ~/.netrc, else anonymous.

    Raises UsageError for a ~/.netrc that cannot be parsed, or that tells others a password we need, and for
    what no command can carry.
    """
    user, password = _found(location)
    for what, text in (("user", user), ("password", password)):
        if _IN_NO_COMMAND & frozenset(text):  # said here, where the password is not shown
            raise UsageError(
                f"the {what} for {location.host} contains a line end or a NUL byte, which no login has; "
                "was it read from a file together with the end of its line?"
            )
    return user, password


def password_for(location: Location) -> tuple[str, str] | None:
    """Return user and password where the user has named some for this host; None where nobody has.

    Raises UsageError as `credentials`, and AuthenticationError for a user of the URL without a password.
    """
    user, password = credentials(location)
    if password != ANONYMOUS:
        return user, password
    if location.user:
        raise AuthenticationError(
            f"no password for {location.user!r} at {location.host}: put it into ~/.netrc or MPX_PASSWORD"
        )
    return None


def check_one_password(source: Location, destination: Location) -> None:
    """Raise UsageError where the password of the environment would go to two hosts: it is that of one."""
    hosts = {each.host for each in (source, destination) if each.scheme in _SHOWN_ONE and each.user}
    if len(hosts) > 1 and os.environ.get("MPX_PASSWORD") is not None:
        raise UsageError(
            f"MPX_PASSWORD would be sent to both {source.host} and {destination.host}; put the passwords "
            "into ~/.netrc, a line for each, and unset it"
        )


def _found(location: Location) -> tuple[str, str]:
    password = os.environ.get("MPX_PASSWORD")
    if location.user and password is not None:
        return location.user, password  # never for anonymous: it may be meant for another server
    try:
        file = Path("~/.netrc").expanduser()
        about = file.stat()
        if about.st_rdev == os.stat(os.devnull).st_rdev:  # so people switch it off
            return location.user or "anonymous", ANONYMOUS
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST_NETRC_BYTES:
            raise UsageError("cannot read ~/.netrc: it is not a regular file of at most 1 MiB; move it away")
        entry = netrc.netrc(file).authenticators(location.host)  # named, it is not asked who may read it
    except (FileNotFoundError, RuntimeError):  # no file, or nobody knows our home
        entry = None
    except netrc.NetrcParseError as error:  # whose text may hold a password
        raise UsageError(
            f"cannot read ~/.netrc: it is not understood at or before line {error.lineno}"
        ) from None
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot read ~/.netrc: {error}") from None
    if entry and (not location.user or entry[0] in ("", location.user)):
        if entry[0] != "anonymous" and (about.st_mode & 0o077 or about.st_uid != os.getuid()):
            raise UsageError(
                f"~/.netrc holds a password for {location.host} and is not yours alone; chmod 600 ~/.netrc"
            )
        return entry[0] or location.user or "anonymous", entry[2] or ""
    return location.user or "anonymous", ANONYMOUS
