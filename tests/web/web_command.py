"""The command mpx as whoever calls it has it: in the same network, and in an environment of its own."""

import os

from mpx_command import Ended, mpx
from web.shared_servers import with_environment

_NETWORK = "/proc/thread-self/ns/net"  # of the calling thread
_FIRST_NETWORK = os.readlink(_NETWORK)  # in which tests begin


def mpx_there(*words: object, **environment: str) -> Ended:
    """Run mpx to its end in the network of the calling thread, with these variables."""
    is_elsewhere = os.readlink(_NETWORK) != _FIRST_NETWORK
    with with_environment(environment):  # a command that is given an environment is not forked elsewhere
        return mpx(*words, environment={"MPX_TESTED_IN": "its network"} if is_elsewhere else None)
