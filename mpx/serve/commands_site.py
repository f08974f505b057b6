"""SITE: what FTP has no command of its own for."""

from mpx._version import __version__
from mpx.endpoints.ftp.extensions import renaming
from mpx.endpoints.ftp.wire import reply_line
from mpx.serve import arguments
from mpx.serve.commands_names import renamed_from
from mpx.serve.replies import RefusalReply
from mpx.serve.session import Command, Session
from mpx.serve.times import parse_time


def site(session: Session, argument: str) -> bytes:
    """Do one SITE command."""
    verb, _, rest = argument.lstrip(" ").partition(" ")  # a name may end in blanks
    command = _COMMANDS.get(verb.upper())
    if not command:
        raise RefusalReply(500, f"SITE {verb[:20]!a}: command not understood.")
    if command.login and not session.logged_in:
        raise RefusalReply(530, "Log in with USER anonymous and PASS.")
    if command.writes and not session.writable:
        raise PermissionError(30, session.why_read_only)
    return command.run(session, rest)


def _help(_: Session, __: str) -> bytes:
    return reply_line(214, "SITE commands:", *sorted(_COMMANDS), "End.")


def _version(_: Session, __: str) -> bytes:
    return reply_line(200, f"mpx serve {__version__}")


def _mode(session: Session, argument: str) -> bytes:
    digits, _, name = argument.partition(" ")
    if not 0 < len(digits) <= 4 or digits.strip("01234567") or int(digits, 8) > 0o777:
        raise RefusalReply(501, "SITE CHMOD takes permission bits up to 777 in octal, and a name.")
    session.root.set_mode(session.path(name), int(digits, 8))
    return b"250 SITE CHMOD command successful.\r\n"


def _times(session: Session, argument: str) -> bytes:
    # Two forms are in use: `NAME ATIME MTIME CTIME UTC`, and `MTIME NAME`.
    name, *times = argument.rsplit(" ", 4)
    if name and len(times) == 4 and times[3] == "UTC" and all(map(arguments.is_time, times[:3])):
        access, modification = times[:2]
    else:
        access, _, name = argument.partition(" ")
        modification = access
        if not name or not arguments.is_time(access):
            raise RefusalReply(501, "SITE UTIME takes a time and a name, or a name, three times and UTC.")
    session.root.set_times(session.path(name), parse_time(access), parse_time(modification))
    return b"250 SITE UTIME command successful.\r\n"


def _truncate(session: Session, argument: str) -> bytes:
    found = arguments.numbers_and_name(argument, 1)
    if not found:
        raise RefusalReply(501, "SITE TRNC takes a length and a name.")
    (length,), name = found
    session.root.shrink(session.path(name), length)
    return b"250 SITE TRNC command successful.\r\n"


def _rename_to_new(session: Session, argument: str) -> bytes:
    session.root.rename(renamed_from(session), session.path(argument), replaces=False)
    return b"250 SITE RNNEW command successful.\r\n"


def set_buffer(session: Session, argument: str) -> bytes:
    """SBUF and its older names: the socket buffers of data connections, in bytes."""
    size = arguments.number(argument.strip(), most_digits=9)
    if size is None:
        raise RefusalReply(501, "A size in bytes is needed.")
    session.channel.buffer_bytes = size
    return b"200 Buffer size set.\r\n"


def _ok(_: Session, __: str) -> bytes:
    return b"250 OK.\r\n"


_COMMANDS = {
    "HELP": Command(_help, login=False),
    "VERSION": Command(_version, login=False),
    "CLIENTINFO": Command(_ok, login=False),
    "TASKID": Command(_ok),
    "CHMOD": Command(_mode, writes=True),
    "UTIME": Command(_times, writes=True),
    renaming.VERB: Command(_rename_to_new, argument=True, writes=True),
    "TRNC": Command(_truncate, writes=True),
    "SBUF": Command(set_buffer),
    "RETRBUFSIZE": Command(set_buffer),
    "STORBUFSIZE": Command(set_buffer),
}
