"""What the emulator writes down while it runs."""

import resource
import time

from lab_pair import Pair
from mpx_lab.emulator.accounting import Tally
from mpx_lab.emulator.link import EmulatedLink
from mpx_lab.emulator.link_log import LinkLogLine, older_part, read_log
from mpx_lab.shape import Direction, Shape
from wires import FULL, OPEN, Eventually, Wire, Wired, taken_in


def test_the_log_tells_what_happened(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(Shape(rate_bps=1, queue_packets=50))
    wire.send(100)
    eventually(taken_in(link, 100))  # however slowly they were sent
    link.change(Direction.A_TO_B, rate_bps=5_000_000)
    wire.receive(50)
    eventually(lambda: link.stats().a_to_b.held == Tally())
    stats = link.stats()
    link.stop()
    there, back = (lines_of(direction, link) for direction in Direction)
    assert len(back) == 1  # nothing happened in it
    assert max(sample.queue_max_bytes for sample in there) == 50 * FULL
    last = there[-1]
    assert (last.received, last.delivered) == (stats.a_to_b.received, stats.a_to_b.delivered)
    assert last.dropped_queue == Tally(50, 50 * FULL)
    assert all(sample.up for sample in there)
    assert last.rate_bps == 5_000_000
    assert max(sample.pickup_max_s for sample in there) == stats.a_to_b.pickup.max_ns / 1e9


def lines_of(direction: Direction, link: EmulatedLink) -> list[LinkLogLine]:
    return [sample for sample in read_log(link.log) if sample.direction is direction]


def test_a_pause_has_no_lines_but_its_end_is_told(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(OPEN)
    eventually(lambda: lines_of(Direction.A_TO_B, link))
    paused_s = time.monotonic() + 0.5
    eventually(lambda: time.monotonic() > paused_s)
    wire.send(1)
    eventually(lambda: lines_of(Direction.A_TO_B, link)[-1].received.frames == 1)
    first, last, new = lines_of(Direction.A_TO_B, link)
    assert (first.received, last.received) == (Tally(), Tally())
    assert first.time_s < last.time_s < new.time_s
    assert new.time_s - last.time_s < last.time_s - first.time_s


def test_a_log_that_has_its_size_goes_on_in_a_new_file(
    pair: Pair, wired: Wired, eventually: Eventually
) -> None:
    link = pair.start(OPEN, OPEN, log_bytes=2000)
    wire = Wire(pair)
    while not older_part(link.log).exists():
        wire.send(1)
        wire.receive(1)
    wire.send(1)
    wire.receive(1)
    eventually(lambda: lines_of(Direction.A_TO_B, link)[-1].received == link.stats().a_to_b.received)
    assert link.log.stat().st_size < 4000
    times = [sample.time_s for sample in lines_of(Direction.A_TO_B, link)]
    assert times == sorted(set(times))
    wire.close()


def test_a_log_that_cannot_be_written_on_is_told_of(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(OPEN)
    eventually(lambda: len(read_log(link.log)) == 2)
    size_bytes = link.log.stat().st_size + 20
    resource.prlimit(link.pid, resource.RLIMIT_FSIZE, (size_bytes, size_bytes))
    assert not link.stats().log_failed
    wire.send(1)
    eventually(lambda: link.stats().log_failed)
    assert len(read_log(link.log)) == 2
    assert wire.receive(1)
