"""Limits of the frames that switches forward to us, so that a flood at one port does not affect others."""

from mpx.engine.token_bucket import TokenBucket
from mpx_controller.network.discovery_frame import is_discovery, is_to_all

PORT_RATE, PORT_BURST = 200.0, 400.0  # frames of one port: per second, and at once
SWITCH_RATE, SWITCH_BURST = 1000.0, 1000.0  # of all its ports together
ALL_RATE, ALL_BURST = 5000.0, 5000.0  # of all switches: well within what one processor can handle
LINK_RATE, LINK_BURST = 20.0, 40.0  # of our discovery frames: each link carries about one a second
TO_ALL_RATE, TO_ALL_BURST = (
    100.0,
    200.0,
)  # of those to all, from all that a bridge joins: quickly read
ASKED_RATE, ASKED_BURST = 512 * LINK_RATE, 512 * LINK_RATE  # of all ports that a switch may have
MOST_PORTS = 10_000  # tracked; more than that are forgotten


class FrameBudget:
    """The limit of one switch, within that of all; discovery frames have limits of their own.

    So no link is lost in a flood: only a neighbour can exhaust that limit, as switches do not forward such
    frames. Hosts behind a bridge can exhaust that of its broadcast discovery frames.
    """

    def __init__(self, of_all: TokenBucket) -> None:
        self._budgets = TokenBucket(SWITCH_RATE, SWITCH_BURST), of_all
        self._asked = TokenBucket(ASKED_RATE, ASKED_BURST)
        self._ports: dict[tuple[int, bool, bool], TokenBucket] = {}

    def allows(self, number: int, data: bytes, now_s: float) -> bool:
        """Whether a frame from a port is to be handled."""
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
