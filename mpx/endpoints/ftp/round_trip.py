"""The round-trip time of a session, with what else of its control channel decides how data are sent."""

from mpx.endpoints.ftp.session import ClientSession
from mpx.engine.endpoint import Rtt
from mpx.net import tcp


def rtt_of(session: ClientSession) -> Rtt:
    """Return it after one more exchange; raises ConnectionLost, TransferTimeout."""
    address: tcp.Address | None = (session.peer_host, session.location.port)
    if session.tickets and not session.local_host:  # through ssh
        address = session.tickets.address()
    return Rtt(
        session.measure_rtt(),
        session.kernel.rtt_s,
        session.kernel.congestion,
        congestion_is_fixed=session.kernel.is_congestion_fixed,
        address=address,
        local_host=session.local_host or None,
    )
