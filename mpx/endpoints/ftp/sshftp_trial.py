"""Whether a GridFTP server at the other end of ssh can be used: data connections reach it, and are encrypted.

Firewalls often let ssh in alone, and a server without a folder of CAs takes no certificate (DCSC).
"""

from collections.abc import Sequence

from mpx.endpoints.ftp.data_address import passive_port
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.listing_transfer import ListingTransfer
from mpx.endpoints.ftp.refusals import reply_error
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.ftp.ssh.sshftp import SshftpServer
from mpx.endpoints.ftp.wire import command
from mpx.errors import ConnectionLost, Interrupted, MpxError
from mpx.location import Location
from mpx.net import tcp

REACHED_S = 3.0  # two attempts of TCP; who waits longer would copy by SFTP meanwhile
_MOST_ADDRESSES = 3
_LISTED = "/dev/null"  # one entry, at any host, and no file system that may hang


def why_not_sshftp(
    server: SshftpServer, location: Location, pool: SessionPool, options: SessionOptions, names: Sequence[str]
) -> str:
    """Open a session of `pool`, which gets it back, and list something; return why that failed, or nothing.

    `server`: that of the location, which learns by which address it is reached. `names`: what it is to carry
    for all that is known. Raises Interrupted.
    """
    try:
        session = pool.open(location, options)
        try:
            for name in names:
                session.name(name)
            server.use(_reached(server, session))
            tried = ListingTransfer(
                session,
                command("MLSD", _LISTED),
                lambda reply: reply_error(reply, f"{server.name} cannot list", ConnectionLost),
            )
            if not list(tried.lines()):
                return f"{server.name} lists nothing"
        except BaseException:
            session.close()
            raise
        pool.give_back(session)
    except Interrupted:
        raise
    except MpxError as error:
        return str(error)
    return ""


def _reached(server: SshftpServer, session: ClientSession) -> str:
    """Return the address at which the server's data connections are reached; raises ConnectionLost."""
    options, failed = session.options, ConnectionLost(f"{server.name} has no address that is known here")
    port = 0
    for host in server.addresses(options.stop)[:_MOST_ADDRESSES]:
        try:
            server.use(host)
            if options.data_address_from_server:
                return host
            port = port or passive_port(session, (), Direction.UP).address[1]
            tcp.connect(
                (host, port),
                min(REACHED_S, options.connect_timeout_s),
                source_ports=options.source_ports,
                source_host=options.data_address,
                stop=options.stop,
            ).close()
        except ConnectionLost as error:
            failed = error
        else:
            return host
    raise failed
