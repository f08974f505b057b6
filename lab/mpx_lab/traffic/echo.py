"""Sends every datagram back: `python -m mpx_lab.traffic.echo --at 10.0.0.2`; the other side of the prober.

Prints `ready PORT`. An answer says how long the datagram waited here for this program to run.
"""

import argparse
import contextlib
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence

from mpx.net import tcp
from mpx.rtt.timestamps import receive, stamp_arrivals
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.punctual import be_punctual

PROBE = struct.Struct("!Qd48x")  # number, seconds that it waited at the echo: 64 bytes
_LOOK_MS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer until told to end; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.traffic.echo", description=__doc__)
    parser.add_argument("--at", required=True, metavar="ADDRESS", help="address to listen on")
    options = parser.parse_args(arguments)
    ending = Ending()
    be_punctual()
    with socket.socket(tcp.family_of(options.at), socket.SOCK_DGRAM) as echo:
        try:
            echo.bind((options.at, 0))
        except OSError as error:
            sys.stderr.write(f"echo: cannot listen on {options.at}: {error.strerror}\n")
            return 1
        stamp_arrivals(echo)
        sys.stdout.write(f"ready {echo.getsockname()[1]}\n")
        sys.stdout.flush()
        poll = select.poll()
        poll.register(echo, select.POLLIN)
        while not ending():
            if not poll.poll(_LOOK_MS):
                continue
            probe = receive(echo)
            if len(probe.data) == PROBE.size:
                number = PROBE.unpack(probe.data)[0]
                here_s = probe.waited_s + time.monotonic() - probe.at_s
                with contextlib.suppress(OSError):  # no room, or no route back: a probe is lost
                    echo.sendto(PROBE.pack(number, here_s), probe.sender)
    return 0


if __name__ == "__main__":
    sys.exit(main())
