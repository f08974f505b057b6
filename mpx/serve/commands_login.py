"""Commands about the session itself: login, features, modes, options."""

from mpx.endpoints.ftp.extensions import congestion, dialing, echo, renaming, sink, third_party
from mpx.endpoints.ftp.wire import reply_line
from mpx.net import mptcp
from mpx.serve import commands_site
from mpx.serve.checksum import ALGORITHMS
from mpx.serve.control import ControlClosed
from mpx.serve.listing import FACTS
from mpx.serve.replies import RefusalReply
from mpx.serve.session import Command, Session
from mpx.serve.settings import set_options, set_restart, set_trigger

_OK = b"200 OK.\r\n"


def _user(session: Session, argument: str) -> bytes:
    session.user = argument.strip()
    if session.access:
        return b"331 The secret of the token is required.\r\n"
    return b"331 Password required: any will do for anonymous.\r\n"


def _pass(session: Session, secret: str) -> bytes:
    if session.access:
        if not session.logged_in:
            session.log_in_with(secret)
        return b"230 Logged in.\r\n"
    if session.user.lower() not in ("anonymous", "ftp"):
        raise RefusalReply(530, "Login incorrect: only USER anonymous is served here.")
    if not session.logged_in:
        session.log_in()
    return b"230 User anonymous logged in.\r\n"


def _quit(_: Session, __: str) -> bytes:
    raise ControlClosed("QUIT", (221, "Goodbye."))


def _features(session: Session, _: str) -> bytes:
    sums = "".join(f"{name}:10;" for name in ALGORITHMS)
    facts = "".join(f"{name}{'*' if name in session.settings.facts else ''};" for name in FACTS)
    lines = [f"CKSM {sums}", "DCAU", "EPRT", "EPSV", "ERET", "ESTO", "MDTM", "MFMT", "MLSC", "MLSR"]
    lines += [f"MLST {facts}"]
    if usable := session.settings.usable_congestion():
        lines += [f"{congestion.FEATURE} {' '.join(usable)}"]
    if not mptcp.why_not(session.control.family):
        lines += [mptcp.FEATURE]
    if place := session.echo_place():
        lines += [place.feature, echo.PULSE_FEATURE]
    if session.access:
        lines += [dialing.FEATURE]
        if session.limits.third_party:
            lines += [third_party.FEATURE]
    lines += [renaming.FEATURE, sink.FEATURE]
    lines += ["PARALLEL", "REST STREAM", "SIZE", "SPAS", "SPOR", "TVFS", "UTF8", "WHOAMI"]
    return reply_line(211, "Extensions supported", *lines, "End.")


def _type(_: Session, argument: str) -> bytes:
    # The type is accepted and files are moved byte for byte all the same: nobody wants data changed.
    if argument.split()[0].upper() not in ("A", "I", "L"):
        raise RefusalReply(504, "TYPE A and I are served.")
    return reply_line(200, f"Type set to {argument.split()[0].upper()}.")


def _mode(session: Session, argument: str) -> bytes:
    mode = argument.strip().upper()
    if mode not in ("E", "S"):
        raise RefusalReply(504, "MODE E and S are served.")
    session.settings.blocks = mode == "E"
    return reply_line(200, f"Mode set to {mode}.")


def _structure(_: Session, argument: str) -> bytes:
    if argument.strip().upper() != "F":
        raise RefusalReply(504, "STRU F is served.")
    return _OK


def _options(session: Session, argument: str) -> bytes:
    return reply_line(200, set_options(session.settings, argument))


def _trigger(session: Session, argument: str) -> bytes:
    set_trigger(session.settings, argument)
    return _OK


def _restart(session: Session, argument: str) -> bytes:
    set_restart(session.settings, argument.strip())
    return b"350 Restart Marker OK. Send STOR or RETR to go on.\r\n"


def _data_authentication(_: Session, argument: str) -> bytes:
    if argument.strip().upper() != "N":
        raise RefusalReply(504, "DCAU N is served: data goes in the clear.")
    return b"200 DCAU N.\r\n"


def _protection(_: Session, argument: str) -> bytes:
    if argument.strip().upper() != "C":
        raise RefusalReply(536, "PROT C is served: data goes in the clear.")
    return b"200 Protection level set to C.\r\n"


def _who_am_i(session: Session, _: str) -> bytes:
    return reply_line(200, session.grant.id if session.grant else "anonymous")


def _ok(_: Session, __: str) -> bytes:
    return _OK


COMMANDS = {
    "USER": Command(_user, argument=True, login=False),
    "PASS": Command(_pass, login=False),
    "QUIT": Command(_quit, login=False),
    "NOOP": Command(lambda _, __: b"200 NOOP command successful.\r\n", login=False),
    "ABOR": Command(lambda _, __: b"226 Abort successful.\r\n", login=False),
    "SYST": Command(lambda _, __: b"215 UNIX Type: L8\r\n", login=False),
    "FEAT": Command(_features, login=False),
    "AUTH": Command(lambda _, __: b"502 Only logins in the clear are served.\r\n", login=False),
    "OPTS": Command(_options, argument=True, login=False),
    "SITE": Command(commands_site.site, argument=True, login=False),
    "WHOAMI": Command(_who_am_i),
    "TYPE": Command(_type, argument=True),
    "MODE": Command(_mode, argument=True),
    "STRU": Command(_structure, argument=True),
    "TREV": Command(_trigger, argument=True),
    "REST": Command(_restart, argument=True),
    "SBUF": Command(commands_site.set_buffer, argument=True),
    "ALLO": Command(_ok),
    "PBSZ": Command(lambda _, __: b"200 PBSZ=0\r\n", login=False),
    "PROT": Command(_protection, argument=True, login=False),
    "DCAU": Command(_data_authentication, argument=True, login=False),
}
