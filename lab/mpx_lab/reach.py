"""Waits until datagrams get through between given pairs of addresses."""

import select
import socket
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import partial

from mpx_lab.namespace import inside
from mpx_lab.state import LabError

Place = tuple[str, str]  # a namespace and an address in it
AGAIN_S = 0.1  # between two attempts
PORT = 9  # the discard service; nothing listens there in new namespaces


def wait_reachable(pairs: Iterable[tuple[Place, Place]], within_s: float) -> None:
    """Return when every pair has been reached; raises LabError naming one that has not."""
    missing = set(pairs)
    places = {place for pair in missing for place in pair}
    with ExitStack() as open_sockets:
        sockets = {
            place: open_sockets.enter_context(inside(place[0], partial(_bound, place[1]))) for place in places
        }
        place_of_fd = {one.fileno(): place for place, one in sockets.items()}
        place_of_address = {place[1]: place for place in places}
        poll = select.poll()
        for fd in place_of_fd:
            poll.register(fd, select.POLLIN)
        deadline_s = time.monotonic() + within_s
        while missing:
            if time.monotonic() > deadline_s:
                (_, source), (_, target) = min(missing)
                others = f", nor do {len(missing) - 1} others" if len(missing) > 1 else ""
                raise LabError(
                    f"{source} does not reach {target} within {within_s:g} s{others}; if a link is to lose "
                    "nearly all, build the lab without that and change the link once it is up"
                )
            for source_place, target_place in missing:
                with suppress(OSError):  # the address is not resolved yet
                    sockets[source_place].sendto(b"reach", (target_place[1], PORT))
            again_s = time.monotonic() + AGAIN_S
            while missing and (rest_s := again_s - time.monotonic()) > 0:
                for fd, _ in poll.poll(rest_s * 1000):
                    target_place = place_of_fd[fd]
                    with suppress(OSError):
                        sender = sockets[target_place].recvfrom(100)[1][0]
                        missing.discard((place_of_address.get(sender, target_place), target_place))


def _bound(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    one = socket.socket(family, socket.SOCK_DGRAM)
    try:
        one.setblocking(False)
        one.bind((address, PORT))
    except BaseException:
        one.close()
        raise
    return one
