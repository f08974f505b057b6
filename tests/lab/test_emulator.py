"""The emulator with real frames between two network namespaces: none is lost, changed or overtaken."""

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab_pair import Pair, inside
from mpx_lab.emulator.accounting import LinkStats, Tally
from mpx_lab.emulator.link import EmulatedLink, End, LinkError
from mpx_lab.emulator.link_log import Sample, older_part, read_log
from mpx_lab.shape import Direction, Shape
from mpx_lab.state import LabError
from traces import traces

from mpx.errors import UsageError

Eventually = Callable[..., None]
KIND = 0x88B5  # an EtherType for experiments
FULL = 1514
NUMBER = struct.Struct("!I")
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
SO_TIMESTAMPNS = 35
STANDSTILL = Shape(rate_bps=1)  # a full frame takes three hours
OPEN = Shape()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the emulator is built once, although every test has a home of its own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def pair(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Two namespaces; as root only, and only where a TAP device can be made."""
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        message = "needs root and /dev/net/tun, for network namespaces and TAP devices"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    with Pair(f"test{os.getpid()}") as made:
        yield made


class Wire:
    """Raw sockets at both devices of the first link; frames are numbered."""

    def __init__(self, pair: Pair, *, back: bool = False) -> None:
        self._sockets = []
        for netns in pair.netns:
            with inside(netns):
                end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(KIND))
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 27)
            end.bind(("wan0", KIND))
            end.settimeout(30)
            self._sockets.append(end)
        self._sender, self.receiver = reversed(self._sockets) if back else self._sockets
        self._sent = 0

    def close(self) -> None:
        for end in self._sockets:
            end.close()

    def send(self, count: int, size: int = FULL) -> list[bytes]:
        """Send frames and return them."""
        frames = [frame(number, size) for number in range(self._sent, self._sent + count)]
        self._sent += count
        for each in frames:
            self._sender.send(each)
        return frames

    def make_room(self) -> None:
        """Let frames be sent although nobody takes them yet."""
        self._sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 27)

    def receive(self, count: int) -> list[bytes]:
        return [self.receiver.recv(65536) for _ in range(count)]


@pytest.fixture
def wired(pair: Pair) -> Iterator[Callable[..., tuple[EmulatedLink, Wire]]]:
    """`wired(shape)` starts a link that has this shape from A to B, and its wire."""
    wires = []

    def start(there: Shape, back: Shape = OPEN) -> tuple[EmulatedLink, Wire]:
        link = pair.start(there, back)
        wires.append(Wire(pair))
        return link, wires[-1]

    yield start
    for wire in wires:
        wire.close()


Wired = Callable[..., tuple[EmulatedLink, Wire]]


def frame(number: int, size: int = FULL) -> bytes:
    head = b"\x02\0\0\0\0\x02" + b"\x02\0\0\0\0\x01" + struct.pack("!H", KIND) + NUMBER.pack(number)
    return head + bytes((number + i) % 251 for i in range(size - len(head)))


def numbers(frames: list[bytes]) -> list[int]:
    return [NUMBER.unpack_from(each, 14)[0] for each in frames]


def taken_in(link: EmulatedLink, count: int) -> Callable[[], bool]:
    return lambda: link.stats().a_to_b.received.frames == count


def stopped(link: EmulatedLink) -> Callable[[], bool]:
    return lambda: Path(f"/proc/{link.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def balanced(stats: LinkStats) -> bool:
    return stats.a_to_b.balance == stats.b_to_a.balance == Tally()


def carriers(pair: Pair) -> list[bool]:
    """Whether each device has a carrier."""
    found = []
    for netns in pair.netns:
        with inside(netns):
            shown = subprocess.run(
                ["ip", "-j", "link", "show", "dev", "wan0"], capture_output=True, check=True
            )
        found.append("NO-CARRIER" not in json.loads(shown.stdout)[0]["flags"])
    return found


def devices(pair: Pair) -> list[str]:
    """Every device of both namespaces."""
    found = []
    for netns in pair.netns:
        with inside(netns):
            found += [name for _, name in socket.if_nameindex()]
    return found


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


def test_no_frame_is_early_and_the_rate_is_kept(wired: Wired) -> None:
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
        late_s = seconds + nanoseconds / 1e9 - began_s - ideal_s
        assert -0.00001 < late_s < 1.0  # an idle machine: below 0.0002


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
    with inside(pair.netns[0]):
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
    with inside(pair.netns[1]):
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
    with inside(pair.netns[0]):
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


def lines_of(direction: Direction, link: EmulatedLink) -> list[Sample]:
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


def test_a_frame_that_waited_while_the_machine_stood_still_shows_it(
    wired: Wired, eventually: Eventually
) -> None:
    link, wire = wired(OPEN)
    wire.send(1)
    wire.receive(1)
    os.kill(link.pid, signal.SIGSTOP)
    eventually(stopped(link))
    wire.send(1)
    sent_s = time.monotonic()
    eventually(lambda: time.monotonic() > sent_s + 0.3)
    waited_s = time.monotonic() - sent_s
    os.kill(link.pid, signal.SIGCONT)
    wire.receive(1)
    longest_s = link.stats().a_to_b.pickup.max_ns / 1e9
    assert longest_s > waited_s - 0.1  # without frames it looks after its log ten times a second


def sigterm_is_blocked(link: EmulatedLink) -> bool:
    status = Path(f"/proc/{link.pid}/status").read_text()
    blocked = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    return bool(int(blocked, 16) >> (signal.SIGTERM - 1) & 1)


FLOOD = """
import socket, sys
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("wan0", 0x88B5))
print("ready", flush=True)
while True:
    sender.send(bytes(60))
"""


def test_it_ends_when_it_is_told_to_however_many_frames_come(
    pair: Pair, wired: Wired, eventually: Eventually
) -> None:
    link, _ = wired(OPEN)
    with ExitStack() as senders:
        for netns in pair.netns:
            with inside(netns):
                sender = subprocess.Popen(
                    [sys.executable, "-c", FLOOD], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
            senders.enter_context(sender)
            senders.callback(sender.kill)
            assert sender.stdout is not None
            assert sender.stdout.readline() == b"ready\n"
        eventually(lambda: link.stats().b_to_a.received.frames > 0)
        # A signal that only a wait lets through may come late or never: such a wait finds frames at once.
        assert not any(sigterm_is_blocked(link) for _ in range(1000))
        os.kill(link.pid, signal.SIGTERM)
        eventually(lambda: devices(pair) == ["lo", "lo"], within_s=5)


def test_one_that_does_not_run_any_more_is_stopped_all_the_same(
    wired: Wired, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpx_lab.emulator.link.END_S", 0.1)
    link, _ = wired(OPEN)
    os.kill(link.pid, signal.SIGSTOP)
    eventually(stopped(link))
    link.stop()


def test_a_kill_leaves_no_device_and_it_can_be_started_again(pair: Pair, eventually: Eventually) -> None:
    link = pair.start(OPEN, OPEN)
    assert devices(pair) == ["lo", "wan0", "lo", "wan0"]
    os.kill(link.pid, signal.SIGKILL)
    eventually(lambda: devices(pair) == ["lo", "lo"])
    with pytest.raises(LinkError, match="does not answer"):
        link.stats()
    pair.stop()
    pair.start(OPEN, OPEN)
    assert devices(pair) == ["lo", "wan0", "lo", "wan0"]


def test_another_process_can_drive_it(pair: Pair) -> None:
    started = pair.start(OPEN, OPEN)
    link = EmulatedLink.attach(pair.folder, started.name)
    link.change(Direction.B_TO_A, loss=0.25, seed=3)
    assert started.stats().b_to_a.shape == Shape(loss=0.25, seed=3)
    assert started.stats().a_to_b.shape == OPEN
    link.stop()
    assert devices(pair) == ["lo", "lo"]
    assert not list(pair.folder.glob("*.control"))


def test_impossible_changes_change_nothing(pair: Pair) -> None:
    shape = Shape(1_000_000, 0.01, queue_packets=5)
    link = pair.start(shape, OPEN)
    with pytest.raises(UsageError, match="loss"):
        link.change(Direction.A_TO_B, rate_bps=2_000_000, loss=2)
    for request in (
        "set a-to-b rate=5 loss=x",
        "set a-to-b up=0",
        "set c rate=5",
        "set",
        "dance",
        "x" * 5000,
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.connect(str(pair.folder / "wan0.control"))
            control.send(request.encode())
            assert control.recv(1000).startswith(b"error ")
    stats = link.stats()
    assert (stats.a_to_b.shape, stats.b_to_a.shape, stats.up) == (shape, OPEN, True)


def test_what_prevents_a_start_is_said(pair: Pair) -> None:
    pair.start(OPEN, OPEN)
    a, b = pair.netns
    for ends, reason in (
        ((End(a, "wan0"), End(b, "other")), "wan0: cannot make it"),
        ((End(a, "other"), End(b, "wan0")), "wan0: cannot make it"),
        ((End(a, "other"), End("/run/netns/nowhere", "other")), "/run/netns/nowhere"),
        ((End(a, "a-name-far-too-long"), End(b, "other")), "15 characters"),
        ((End(a, "other", "02:00"), End(b, "other")), "MAC"),
    ):
        with pytest.raises(LinkError, match=reason):
            EmulatedLink("second", pair.folder, *ends, OPEN, OPEN).start()
        assert devices(pair) == ["lo", "wan0", "lo", "wan0"]


KILLED = """
import sys, time
from lab_pair import Pair
from mpx_lab.shape import Shape
with Pair(sys.argv[1]) as pair:
    pair.start(Shape(), Shape())
    print("started", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_pair_has_left_the_next_one_removes(pair: Pair) -> None:
    name = f"killed{os.getpid()}"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-c", KILLED, name]
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        with pytest.raises(LabError, match="by another process"), Pair(name):
            pass
        process.kill()
    assert traces(name)
    with Pair(name) as next_one:
        assert devices(next_one) == ["lo", "lo"]
    assert traces(name) == []
    assert devices(pair) == ["lo", "lo"]
