"""The connections of a copy that this host sends over, as pulses slow them down."""

from mpx.net.connection_pacer import ConnectionPacer
from mpx.rtt.method import Method


class LocalPacer(ConnectionPacer):
    """Connections that this host sends over, so that it needs no method of asking anybody (Pacing)."""

    @property
    def can(self) -> bool:
        """See Pacing."""
        return True

    def over(self, method: Method) -> None:
        """See Pacing: of no importance here."""
