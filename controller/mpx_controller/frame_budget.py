"""How many frames of hosts switches may hand us, so that a flood at one port takes from nobody else."""

from mpx.engine.token_bucket import TokenBucket
from mpx_controller.network.discovery_frame import is_discovery, is_to_all

PORT_RATE, PORT_BURST = 200.0, 400.0  # frames a second of one port, and at once
SWITCH_RATE, SWITCH_BURST = 1000.0, 1000.0  # of all its ports together
ALL_RATE, ALL_BURST = 5000.0, 5000.0  # of all switches: what a processor can look at with time to spare
LINK_RATE, LINK_BURST = 20.0, 40.0  # of our own questions: about one a second comes over each link
TO_ALL_RATE, TO_ALL_BURST = (
    100.0,
    200.0,
)  # of those to all, from all that a bridge joins: quickly read
ASKED_RATE, ASKED_BURST = 512 * LINK_RATE, 512 * LINK_RATE  # of all ports that a switch may have
MOST_PORTS = 10_000  # that are told apart; a switch that makes up more has them forgotten


class FrameBudget:
    """That of one switch, within that of all. Questions about links have one of their own, those to all, too.

    So no link is lost in a flood; nobody but a neighbour can use that up, as no switch hands such a frame on.
    Who is beyond the same bridge can use up that of questions to all.
    """

    def __init__(self, of_all: TokenBucket) -> None:
        self._budgets = TokenBucket(SWITCH_RATE, SWITCH_BURST), of_all
        self._asked = TokenBucket(ASKED_RATE, ASKED_BURST)
        self._ports: dict[tuple[int, bool, bool], TokenBucket] = {}

    def allows(self, number: int, data: bytes, now_s: float) -> bool:
        """Whether a frame that came in on a port is to be looked at."""
        link, to_all = is_discovery(data), is_to_all(data)
        of = number, link, to_all
        if len(self._ports) >= MOST_PORTS:
            self._ports.clear()
        here = self._ports.get(of)
        if here is None:
            here = self._ports[of] = (
                TokenBucket(LINK_RATE, LINK_BURST)
                if link
                else TokenBucket(TO_ALL_RATE, TO_ALL_BURST)
                if to_all
                else TokenBucket(PORT_RATE, PORT_BURST)
            )
        of_switch = (self._asked,) if link or to_all else self._budgets
        return here.take(now_s) and all(each.take(now_s) for each in of_switch)
