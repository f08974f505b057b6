"""Judges a run in a lab by the counters of its links, hosts and switches before and after it.

with Run(folder, "example", {}) as run, judged(lab, run):
    with Background("udp(rate=50Mbit/s)", "udp", source, sink, address, run.flows, run.epoch_s):
        ...
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mpx_lab import ovs
from mpx_lab.counters import Counters, increase, read_counters
from mpx_lab.cpu import CpuUse
from mpx_lab.emulator.accounting import LinkStats
from mpx_lab.emulator.link_log import copy_log
from mpx_lab.lab import Lab
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.shape import Direction
from mpx_lab.simulated import is_simulated
from mpx_lab.validity import STRICTLY, Punctual, Validity, judge, link_facts


@dataclass(frozen=True)
class Stock:
    """All counters of a lab since it was built."""

    links: Mapping[str, LinkStats]  # the emulated ones, by name
    lost: Counters  # frames that were lost on hosts and at switches, by where


@contextmanager
def judged(lab: Lab, run: Run, punctual: Punctual = STRICTLY) -> Iterator[None]:
    """Judge a run by what happens in its lab within the block, and keep the logs of its emulated links.

    `punctual` is how late frames may be. Generators must have been stopped before the block ends, as they say
    at their end what they gave up. Raises UsageError where one was not, MpxError or OSError where a part of
    the lab cannot be asked. After an error in the block nothing is judged and no log is kept.
    """
    if lab.topology.switches:
        run.versions["open-vswitch"] = ovs.version()
    before = take_stock(lab)
    yield
    after = take_stock(lab)
    for name in after.links if not is_simulated() else ():  # the kernel writes no logs
        copy_log(lab.folder / f"{name}.csv", run.links)
    given_up = RecordedRun.open(run.folder).given_up()
    run.validity = verdict(before, after, run.cpu.uses, given_up, punctual)


def verdict(
    before: Stock,
    after: Stock,
    cpu: Sequence[CpuUse],
    given_up: Mapping[str, float],
    punctual: Punctual = STRICTLY,
) -> Validity:
    """Return whether a run counts, from the counters before and after it; the rest as for `judge`."""
    facts = [
        link_facts(f"{name} {direction}", earlier, later)
        for name, stats in after.links.items()
        for direction, earlier, later in (
            (Direction.A_TO_B, before.links[name].a_to_b, stats.a_to_b),
            (Direction.B_TO_A, before.links[name].b_to_a, stats.b_to_a),
        )
    ]
    found = judge(facts, cpu, increase(before.lost, after.lost), given_up, punctual)
    unlogged = tuple(
        f"not logged: the log of {name} could not be continued and ends too early"
        for name, stats in after.links.items()
        if stats.log_failed
    )
    return replace(found, valid=found.valid and not unlogged, reasons=found.reasons + unlogged)


def take_stock(lab: Lab) -> Stock:
    """Read the counters of all parts of a lab; raises MpxError or OSError where one does not answer."""
    links = {link.name: link.stats() for link in lab.links if link.emulated}
    lost = {
        f"{host.name} {where}": count for host in lab.hosts for where, count in read_counters(host).items()
    }
    return Stock(links, {**lost, "switches": lab.lost_at_switches()})
