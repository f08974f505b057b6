"""Measures the round-trip time at intervals: `python -m mpx_lab.traffic.prober --to HOST:PORT ...`.

Writes NAME.csv: t_s (when the probe was sent), rtt_s (as this program saw it) and noise_s, the part of rtt_s
in which the packet had arrived and only the echo or this program was not running yet. Both are empty for a
probe that was not answered within 3 s. Lines come in the order of the answers.
"""

import argparse
import contextlib
import select
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from mpx.errors import UsageError
from mpx.net import tcp
from mpx.rtt.schedule import later
from mpx.rtt.timestamps import receive, stamp_arrivals
from mpx_lab.traffic.echo import PROBE
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, now_s
from mpx_lab.traffic.punctual import be_punctual
from mpx_lab.traffic.sender import address_of

TRAIN_SPACING_S = 0.001  # between the probes of a train
LOST_AFTER_S = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Probe until told to end; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.traffic.prober", description=__doc__)
    parser.add_argument("--to", required=True, metavar="HOST:PORT", help="the echo; IPv6 as [fd00::2]:5001")
    parser.add_argument("--folder", type=Path, required=True, help="folder to write to")
    parser.add_argument("--name", required=True, help="of the file")
    parser.add_argument("--epoch-s", type=float, required=True, help="time zero on the monotonic clock")
    parser.add_argument(
        "--every-s",
        type=float,
        default=0.1,
        help="interval; single probes are sent at random up to 60%% later",
    )
    parser.add_argument("--train", type=int, default=1, help="probes at a time, 1 ms apart")
    options = parser.parse_args(arguments)
    ending = Ending()
    try:
        address = address_of(options.to)
    except UsageError as error:
        sys.stderr.write(f"prober: {error}\n")
        return error.exit_code
    be_punctual()
    columns = ("t_s", "rtt_s", "noise_s")
    with (
        socket.socket(tcp.family_of(address[0]), socket.SOCK_DGRAM) as probing,
        Log(options.folder / f"{options.name}.csv", columns, options.epoch_s) as log,
    ):
        probing.connect(address)
        probing.setblocking(False)
        stamp_arrivals(probing)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        _probe(probing, log, ending, options.every_s, options.train)
    return 0


def _probe(probing: socket.socket, log: Log, ending: Ending, every_s: float, train: int) -> None:
    poll = select.poll()
    poll.register(probing, select.POLLIN)
    waiting: dict[int, float] = {}  # number of a probe, when it was sent
    number, even_s = 0, now_s()
    due_s = even_s
    while not ending():
        if now_s() >= due_s:
            waiting[number] = now_s()
            with contextlib.suppress(OSError):  # nobody listens, or no route: the probe is lost
                probing.send(PROBE.pack(number, 0.0))
            number += 1
            if number % train:
                due_s = max(due_s + TRAIN_SPACING_S, now_s())
            else:
                uneven_s = later(number, every_s) if train == 1 else 0.0
                # Probes that were missed are not made up for.
                even_s = max(even_s + every_s, now_s() - uneven_s)
                due_s = even_s + uneven_s
        poll.poll(max(0.0, due_s - now_s()) * 1000)
        _answers(probing, log, waiting)
        for lost in [lost for lost, sent_s in waiting.items() if now_s() - sent_s > LOST_AFTER_S]:
            log.line(waiting.pop(lost), None, None)


def _answers(probing: socket.socket, log: Log, waiting: dict[int, float]) -> None:
    with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
        while True:
            answer = receive(probing)
            if len(answer.data) != PROBE.size:
                continue
            number, at_echo_s = PROBE.unpack(answer.data)
            sent_s = waiting.pop(number, None)
            if sent_s is not None:
                noise_s = at_echo_s + answer.waited_s
                log.line(sent_s, f"{answer.at_s - sent_s:.6f}", f"{noise_s:.6f}")


if __name__ == "__main__":
    sys.exit(main())
