"""Why data of a session move in MODE S: what MODE E needs of a server, and of the network in between."""

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import command


def why_mode_s(session: ClientSession, *, downloads: bool) -> str:
    """Return the reason, empty where MODE E is possible. `downloads`: the server connects to us then."""
    host = session.location.host
    if session.is_one_by_one:  # in MODE E a session is given the next transfer before the last ends
        return f"{host} takes one command at a time"
    security, has_address = session.security, session.options.data_address is not None
    if downloads and security and security.is_translated and not has_address:
        return f"{host} cannot connect to us, as addresses are translated in between"
    return "" if session.call(command("MODE", "E")).is_ok else f"{host} has no MODE E"
