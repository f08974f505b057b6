"""The emulator with real frames between two network namespaces: none is lost, changed or overtaken."""

import os
import resource
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
from lab_pair import Pair, entered
from mpx_lab.emulator.accounting import Tally
from mpx_lab.emulator.link import LinkError
from mpx_lab.shape import Direction, Shape
from wires import (
    FULL,
    OPEN,
    SO_TIMESTAMPNS,
    STANDSTILL,
    Eventually,
    Wire,
    Wired,
    balanced,
    carriers,
    numbers,
    stopped,
    taken_in,
)


@pytest.mark.parametrize("back", [False, True])
def test_every_frame_arrives_as_it_was_sent(pair: Pair, back: bool) -> None:
    link = pair.start(Shape(delay_s=0.02), Shape(delay_s=0.01))
    wire = Wire(pair, back=back)
    sent = [each for size in range(60, FULL + 1, 3) for each in wire.send(2, size)]
    assert wire.receive(len(sent)) == sent
    stats = link.stats()
    loaded, idle = (stats.b_to_a, stats.a_to_b) if back else (stats.a_to_b, stats.b_to_a)
    everything = Tally(len(sent), sum(map(len, sent)))
    assert (loaded.received, loaded.delivered, loaded.held) == (everything, everything, Tally())
    assert (loaded.late.total, loaded.pickup.total) == (len(sent), len(sent))
    assert idle.received == Tally()
    assert balanced(stats)
    wire.close()


def test_no_frame_is_early(wired: Wired) -> None:
    """So the rate is not exceeded either; how late frames are is measured by bench/lab_fidelity.py."""
    shape = Shape(rate_bps=10_000_000, delay_s=0.03)
    _, wire = wired(shape)
    wire.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    count = 400
    began_s = time.time()  # the clock of the kernel's time stamps
    wire.send(count)
    for place in range(1, count + 1):
        _, extra, _, _ = wire.receiver.recvmsg(65536, socket.CMSG_SPACE(16))
        seconds, nanoseconds = struct.unpack("=qq", extra[0][2])
        ideal_s = place * FULL * 8 / 10_000_000 + shape.delay_s
        assert seconds + nanoseconds / 1e9 - began_s > ideal_s - 0.00001


def test_a_queue_of_packets_drops_at_its_tail_and_drains_at_a_new_rate(
    wired: Wired, eventually: Eventually
) -> None:
    link, wire = wired(Shape(rate_bps=1, queue_packets=10))
    sent = wire.send(25)
    eventually(taken_in(link, 25))
    there = link.stats().a_to_b
    assert (there.dropped_queue, there.queued) == (Tally(15, 15 * FULL), Tally(10, 10 * FULL))
    assert there.held == there.queued
    link.change(Direction.A_TO_B, rate_bps=100_000_000)  # what waits goes on at the new rate
    assert wire.receive(10) == sent[:10]
    assert balanced(link.stats())


def test_a_queue_of_bytes_counts_bytes(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(Shape(rate_bps=1, queue_bytes=3 * FULL + 100))
    sent = wire.send(4) + wire.send(2, 60)
    eventually(taken_in(link, 6))
    there = link.stats().a_to_b
    assert there.queued == Tally(4, 3 * FULL + 60)
    assert there.dropped_queue == Tally(2, FULL + 60)
    link.change(Direction.A_TO_B, rate_bps=None, queue_packets=1)
    assert link.stats().a_to_b.shape == Shape(queue_packets=1)
    assert wire.receive(4) == [*sent[:3], sent[4]]


def test_one_limit_of_a_queue_replaces_the_other_also_where_it_is_none(pair: Pair) -> None:
    link = pair.start(Shape(queue_packets=100), Shape(queue_bytes=5000))
    link.change_each({Direction.A_TO_B: {"queue_bytes": None}, Direction.B_TO_A: {"queue_packets": None}})
    stats = link.stats()
    assert (stats.a_to_b.shape, stats.b_to_a.shape) == (OPEN, OPEN)
    link.change(Direction.A_TO_B, queue_bytes=5000, queue_packets=None)
    assert link.stats().a_to_b.shape == Shape(queue_bytes=5000)


def splitmix(seed: int, index: int) -> float:
    """The published generator, written anew."""
    top = 2**64
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) % top
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % top
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % top
    return ((z ^ (z >> 31)) >> 11) / 2**53


@pytest.mark.parametrize("seed", [7, 2**64 - 1])
def test_a_seed_loses_the_same_frames_every_time(wired: Wired, eventually: Eventually, seed: int) -> None:
    link, wire = wired(Shape(delay_s=0.01, loss=0.3, seed=seed))
    wire.send(2000, 60)
    expected = [number for number in range(2000) if splitmix(seed, number) >= 0.3]
    assert numbers(wire.receive(len(expected))) == expected
    eventually(lambda: link.stats().a_to_b.held == Tally())
    assert link.stats().a_to_b.dropped_loss.frames == 2000 - len(expected)
    assert balanced(link.stats())
    link.change(Direction.A_TO_B, seed=seed)  # the same once more: it begins anew
    wire.send(500, 60)
    again = [number for number in expected if number < 500]
    assert numbers(wire.receive(len(again))) == [2000 + number for number in again]


def test_changes_lose_nothing_and_let_nothing_overtake(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(Shape(rate_bps=20_000_000, delay_s=0.4))
    sent: list[bytes] = []
    for change in (
        {"delay_s": 0.0},
        {"rate_bps": 1_000_000},
        {"rate_bps": 50_000_000, "delay_s": 0.2},
        {"rate_bps": None},
        {"delay_s": 0.05, "queue_packets": 5000},
        {"rate_bps": 100_000_000, "delay_s": 0.001},
    ):
        sent += wire.send(200)
        eventually(taken_in(link, len(sent)))  # some are on their way, most in the queue
        link.change(Direction.A_TO_B, **change)
    assert wire.receive(len(sent)) == sent
    stats = link.stats()
    assert stats.a_to_b.delivered == stats.a_to_b.received
    assert balanced(stats)


def test_who_waits_for_an_older_frame_is_not_late(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(Shape(delay_s=2))
    sent = wire.send(5)
    eventually(taken_in(link, 5))
    link.change(Direction.A_TO_B, delay_s=0)
    sent += wire.send(5)
    assert wire.receive(10) == sent
    assert link.stats().a_to_b.late.max_ns < 1_000_000_000


def test_a_cut_drops_the_carrier_and_what_is_on_its_way(
    pair: Pair, wired: Wired, eventually: Eventually
) -> None:
    link, wire = wired(Shape(rate_bps=1_000_000, delay_s=30))
    wire.send(20)
    eventually(taken_in(link, 20))
    assert carriers(pair) == [True, True]
    link.set_up(False)
    eventually(lambda: carriers(pair) == [False, False])
    stats = link.stats()
    assert not stats.up
    assert stats.a_to_b.dropped_down == Tally(20, 20 * FULL)
    assert stats.a_to_b.held == stats.a_to_b.queued == Tally()
    assert balanced(stats)
    link.set_up(True)
    link.change(Direction.A_TO_B, delay_s=0)
    eventually(lambda: carriers(pair) == [True, True])
    sent = wire.send(3)
    assert wire.receive(3) == sent


def test_what_is_no_single_packet_is_not_carried(pair: Pair, wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(OPEN)
    with entered(pair.netns[0]):
        subprocess.run(["ip", "link", "set", "wan0", "mtu", "4000"], check=True)
    wire.send(1, 3000)
    eventually(taken_in(link, 1))
    stats = link.stats()
    assert stats.a_to_b.dropped_invalid.frames == stats.a_to_b.dropped_elsewhere == 1
    assert balanced(stats)


def test_what_the_other_device_does_not_take_is_counted(
    pair: Pair, wired: Wired, eventually: Eventually
) -> None:
    link, wire = wired(OPEN)
    with entered(pair.netns[1]):
        subprocess.run(["ip", "link", "set", "wan0", "down"], check=True)
    wire.send(5)
    eventually(lambda: link.stats().a_to_b.write_errors == Tally(5, 5 * FULL))
    assert balanced(link.stats())


def test_what_nobody_listens_for_is_not_lost(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(OPEN)
    wire.receiver.close()
    wire.send(5)
    eventually(lambda: link.stats().a_to_b.delivered == Tally(5, 5 * FULL))
    stats = link.stats()
    assert stats.a_to_b.dropped_elsewhere == stats.b_to_a.dropped_elsewhere == 0


def test_what_the_kernel_dropped_before_the_emulator_read_it_is_counted(
    wired: Wired, eventually: Eventually
) -> None:
    link, wire = wired(OPEN)
    wire.make_room()
    os.kill(link.pid, signal.SIGSTOP)
    eventually(stopped(link))
    wire.send(11_000, 60)  # the device has room for 10,000
    os.kill(link.pid, signal.SIGCONT)
    eventually(lambda: link.stats().a_to_b.received.frames >= 10_000)
    there = link.stats().a_to_b
    assert there.device_dropped > 0
    assert there.received.frames + there.device_dropped == 11_000


def test_losses_at_a_device_that_was_renamed_are_unknown_and_not_none(pair: Pair) -> None:
    link = pair.start(OPEN, OPEN)
    with entered(pair.netns[0]):
        subprocess.run(["ip", "link", "set", "wan0", "name", "other"], check=True)
    with pytest.raises(LinkError, match="wan0 is not where it was made"):
        link.stats()


def test_without_memory_frames_are_counted_as_such(wired: Wired, eventually: Eventually) -> None:
    link, wire = wired(STANDSTILL)
    status = Path(f"/proc/{link.pid}/status").read_text()
    size_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSize"))
    resource.prlimit(link.pid, resource.RLIMIT_AS, (size_kib << 10, size_kib << 10))
    wire.send(2000)
    eventually(taken_in(link, 2000))
    stats = link.stats()
    assert stats.a_to_b.dropped_ring.frames > 0
    assert stats.a_to_b.held.frames > 0
    assert stats.a_to_b.dropped_elsewhere == stats.a_to_b.dropped_ring.frames
    assert balanced(stats)
