"""How servers of mpx send to each other: one is told whom to send to, the other has given a ticket for it."""

from dataclasses import replace

from mpx.engine.capabilities import ThirdParty

BY_TICKETS = ThirdParty("mpx", steered=True)


def without_tickets(host: str) -> ThirdParty:
    """Return how files get to other servers from a host that has no mpx, or one that may not send."""
    why = f"there is no mpx at {host} that sends to or receives from other servers"
    return replace(BY_TICKETS, why_not=why)
