"""Logging in: in one write where the server takes that, else one command after the other.

A round trip for each of USER, PASS and FEAT makes a login the longest part of a small copy. Nearly all
servers read one command after the other from what has arrived; a few end the session, refuse what came
together, or lose it. These get a second connection on which each command of the login waits for the answer to
the last, and are known from then on (known_servers.py). Whether they take commands together later
is tried with two that change nothing: what looked like a refusal may have been a fault of the network, and it
costs much to ask one question at a time.

A server that took a login in one write before is sent it without waiting for its greeting,
but no password that is a secret; it gets a second connection, too, where it does not answer as it should.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.extensions.dialing import VERB
from mpx.endpoints.ftp.known_servers import Login
from mpx.endpoints.ftp.refusals import not_let_in
from mpx.endpoints.ftp.secured import NoDcsc
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.endpoints.passwords import ANONYMOUS, credentials
from mpx.errors import ConnectionLost, MpxError, SessionEnded, TransferTimeout

QUIET_S = 5.0  # without an answer, after which commands that went out together are taken for lost
_OF_THE_COMMAND = (500, 501, 502, 503)  # that it is not understood, or comes at the wrong time
_SETTINGS = (command("FEAT"), command("TYPE", "I"), command("PWD"))
_PAIR = (command("NOOP"), command("NOOP"))
_TICKET = command(VERB).strip()  # asked for, with what follows, where there are some

_Server = tuple[str, int]
_slow: dict[_Server, bool] = {}  # who takes no login in one write, and whether not two commands either
_ask_for_password: set[tuple[_Server, str]] = set()  # and from whom


def log_in(
    session: ClientSession, greeting_s: float | None = None, ahead: Sequence[bytes] = ()
) -> ClientSession:
    """Read the banner, log in and learn what the server can; return the session, or another in its place.

    It waits `greeting_s` for the banner. `ahead`: questions that go out with the login; their answers are
    kept for who asks them (AskedAhead). Raises TransferTimeout if no banner comes, AuthenticationError if we
    are not let in, ConnectionLost; every session is closed then.
    """
    server, known = _server(session), session.options.known
    if known and server not in _slow and (how := known.is_slow(server)):
        _slow[server] = how is Login.SINGLE
    try:
        if session.security:  # the server is known to be the one that is meant
            failed = _early(session, greeting_s, ahead)
            if isinstance(failed, NoDcsc):
                session.close()
                session = ClientSession(session.location, session.options)
                failed = _early(session, greeting_s, ahead)
            if failed:
                raise failed
            return session
        user, password = credentials(session.location)
        # With a secret that was asked for before, one write after the greeting takes no longer.
        is_sooner = password == ANONYMOUS or (server, user) not in _ask_for_password
        if known and is_sooner and server not in _slow and known.takes_early(server):
            failed = _early(session, greeting_s, ahead)
            if failed is None:
                known.took_early(server)
                return session
            if isinstance(failed, SessionEnded) and known.has_taken_early(server):
                raise failed  # it is full
            session.close()
            session = _another(session, greeting_s, failed)
            known.saw(server, Login.LATE)
        else:
            session.greet(greeting_s)
        if server in _slow:
            session.is_one_by_one = _slow[server]
            _step_by_step(session)
            return session
        try:
            refusal = _at_once(session, ahead)
        except (ConnectionLost, TransferTimeout) as error:
            session.close()
            session = _another(session, greeting_s, error)
            _step_by_step(session)
            _slow[server] = not _takes_two(session)
            if _slow[server]:
                session.close()
                session = _another(session, greeting_s, error)
                session.is_one_by_one = True
                _step_by_step(session)
            if known:
                known.saw(server, Login.SINGLE if _slow[server] else Login.STEPS)
        else:
            if refusal is not None:
                raise refusal
            if known and not session.is_in:
                known.saw(server, Login.EARLY)
    except BaseException:
        session.close()
        raise
    return session


def _early(
    session: ClientSession, greeting_s: float | None, ahead: Sequence[bytes]
) -> ConnectionLost | TransferTimeout | None:
    """Log in before the greeting; return what shows that the server does not take that, None if it does.

    Raises what a greeting that does not come raises, and why we are not let in.
    """
    try:
        refusal = _at_once(session, ahead, partial(session.greet, greeting_s))
    except TransferTimeout as error:
        if not session.is_greeted:
            raise
        return error
    except ConnectionLost as error:
        return error
    if refusal is not None:
        raise refusal
    return None


def _another(
    session: ClientSession, greeting_s: float | None, error: ConnectionLost | TransferTimeout
) -> ClientSession:
    """Return another session with the same server, greeted; raises `error` where there is none to be had."""
    try:
        another = ClientSession(session.location, session.options)
    except (ConnectionLost, TransferTimeout):
        raise error from None
    try:
        another.greet(greeting_s)
    except BaseException as failed:
        another.close()
        if isinstance(failed, (ConnectionLost, TransferTimeout)):
            raise error from None
        raise
    return another


def _at_once(
    session: ClientSession, ahead: Sequence[bytes], greet: Callable[[], None] | None = None
) -> MpxError | None:
    """Log in, all in one write; return why we are not let in. `greet` reads a greeting that is still to come.

    A password that is a secret goes only to a server that has asked for it: one that wants encryption refuses
    the name already. And it is not sent again because the answer takes long, as it may be wrong.
    """
    user, password = _credentials(session)
    is_secret = password != ANONYMOUS
    is_known = session.security is not None or (_server(session), user) in _ask_for_password
    login = [] if session.is_in else [command("USER", user), command("PASS", password)]
    asked = None
    if login and is_secret and not is_known:
        asked = _Answers(session, [login.pop(0)], greet).next(session.options.timeout_s)
        greet = None
        if asked.code != 331:
            login = []
            if refusal := _refusal(session, asked, user):
                return refusal
    protection = session.security.settings if session.security else ()
    if not session.tickets:
        ahead = list(takewhile(lambda line: not line.startswith(_TICKET), ahead))
    answers = _Answers(session, [*login, *protection, *_SETTINGS, *ahead], greet)
    if len(login) == 2:
        asked = answers.next()
        if asked.code != 331 and (refusal := _refusal(session, asked, user)):
            return refusal
    if login:
        try:
            let_in = answers.next(session.options.timeout_s if is_secret else QUIET_S)
        except TransferTimeout as error:
            if is_secret:
                return error
            raise
        if asked is not None and asked.code == 331:
            if refusal := _refusal(session, let_in, user, was_first=len(login) == 1):
                return refusal
            _ask_for_password.add((_server(session), user))
    if session.security:
        session.security.settled([answers.next() for _ in protection])
    _settle(session, [answers.next() for _ in _SETTINGS])
    session.ahead.keep(ahead, [answers.next() for _ in ahead])
    return None


def _credentials(session: ClientSession) -> tuple[str, str]:
    return session.security.login if session.security else credentials(session.location)


def _refusal(session: ClientSession, reply: Reply, user: str, *, was_first: bool = False) -> MpxError | None:
    """Return why `user` is not let in; raises ConnectionLost where it was not understood.

    What `was_first` in its write cannot have been misunderstood for what came with it.
    """
    if reply.is_ok:
        return None
    if session.security and (refused := session.security.refused(reply, session.peer)):
        return refused
    if reply.code in _OF_THE_COMMAND and not was_first:
        raise ConnectionLost(f"{session.peer} does not understand the login: {reply.reason}")
    return not_let_in(reply, session.peer, user)


class _Answers:
    """The answers to commands that are sent together; the first one tells the RTT, if it is not known yet.

    `greet` reads a greeting that comes before them, and which a server may take its time for.
    """

    def __init__(
        self, session: ClientSession, commands: Sequence[bytes], greet: Callable[[], None] | None = None
    ) -> None:
        self._session = session
        self._sent_s = None if session.is_rtt_new else time.monotonic()
        session.check_step()
        session.send(*commands)
        if greet:
            greet()
            if session.is_in:
                raise ConnectionLost(f"{session.peer} wanted no login, and was sent one")
            if rtt_s := session.kernel.rtt_s:
                session.saw_rtt(rtt_s)
                session.is_rtt_new, self._sent_s = True, None

    def next(self, quiet_s: float | None = None) -> Reply:
        """Return the next one, which may take `quiet_s`; raises TransferTimeout, ConnectionLost."""
        quiet_s = QUIET_S if quiet_s is None else quiet_s
        reply = self._session.final_reply(min(quiet_s, self._session.options.timeout_s))
        if self._sent_s is not None:
            self._session.saw_rtt(time.monotonic() - self._sent_s)
            self._session.is_rtt_new, self._sent_s = True, None
        return reply


def _server(session: ClientSession) -> _Server:
    """Return which server it is: a name may stand for several."""
    return session.peer_host, session.location.port


def _step_by_step(session: ClientSession) -> None:
    """Log in with a round trip for each command."""
    user, password = credentials(session.location)
    if not session.is_in:
        reply = session.call(command("USER", user))
        if reply.code == 331:
            reply = session.call(command("PASS", password))
        if not reply.is_ok:
            raise not_let_in(reply, session.peer, user)
    _settle(session, [session.call(line) for line in _SETTINGS])


def _takes_two(session: ClientSession) -> bool:
    """Tell whether a server answers two commands that come together; where not the session is of no use."""
    try:
        answers = _Answers(session, _PAIR)
        return answers.next().code == answers.next().code
    except (ConnectionLost, TransferTimeout):
        return False


def _settle(session: ClientSession, replies: Sequence[Reply]) -> None:
    """Take what the answers to the settings say of the server; raises ConnectionLost."""
    features, kind, folder = replies
    if features.code == 211:
        session.features = wire.parse_features(features)
    if not kind.is_ok:
        raise ConnectionLost(f"{session.peer} refuses binary transfers: {kind.reason}")
    session.home = wire.login_folder(folder)
