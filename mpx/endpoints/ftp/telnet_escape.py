"""The byte 0xFF in names: Telnet's escape, which some servers want doubled (RFC 959) and most take as it is.

ProFTPD reads two of them as one and swallows what follows a single one if it is a Telnet command; vsftpd,
Pure-FTPD and pyftpdlib know no Telnet. What a server does shows in how it refuses a name that it repeats.
"""

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import command

_ESCAPE = "\udcff"  # the byte, as names hold what is no UTF-8
_known: dict[tuple[str, int, str], bool] = {}  # by host, port and banner


def has_to_be_learnt(name: str) -> bool:
    """Whether `learn` may have to ask something for a name."""
    return _ESCAPE in name


def asks(session: ClientSession, name: str) -> bool:
    """Whether `learn` asks the server something for a name, so that nothing may be under way."""
    return has_to_be_learnt(name) and not session.tickets and _key(session) not in _known


def learn(session: ClientSession, name: str) -> None:
    """Have a session that is idle send 0xFF as its server reads it, if the name holds any."""
    if not has_to_be_learnt(name) or session.tickets:  # those are servers of ours, which know no Telnet there
        return
    key = _key(session)
    if key not in _known:
        _known[key] = _ask(session)
    session.doubles_escapes = _known[key]


def _key(session: ClientSession) -> tuple[str, int, str]:
    return session.peer_host, session.location.port, session.banner


def _ask(session: ClientSession) -> bool:
    import secrets

    token = secrets.token_hex(4)
    folder = session.home.rstrip("/")
    two, one = session.pipeline([command("CWD", f"{folder}/{_ESCAPE * count}{token}") for count in (2, 1)])
    return wants_doubled(two.text, one.text, token)


def wants_doubled(two: str, one: str, token: str) -> bool:
    """Tell whether a server reads two escapes as one, from how its replies repeat a name with `token`.

    `two` and `one`: its replies to a name with two escapes, and with one, before the token. For example, E
    being the escape: a server that replies "no such folder EEab12" and "no such folder Eab12" takes each
    as it is; one that replies "Eab12" and "ab12" wants them doubled. A server may double them in its replies.
    """
    from_two, from_one = _escapes_before(token, two), _escapes_before(token, one)
    return from_two > 0 and (from_one == 0 or from_two < 2 * from_one)


def _escapes_before(token: str, text: str) -> int:
    before = text.partition(token)[0] if token in text else ""
    return len(before) - len(before.rstrip(_ESCAPE))
