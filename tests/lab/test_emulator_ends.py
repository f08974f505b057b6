"""How links begin and end: told to, killed, refused, stood still, driven by others."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab_pair import Pair, entered
from mpx_lab.emulator.link import EmulatedLink, LinkEnd, LinkError, RunningLink
from mpx_lab.shape import Direction, Shape
from mpx_lab.state import LabError
from traces import traces
from wires import OPEN, Eventually, Wired, devices, stopped

from mpx.errors import UsageError


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
            with entered(netns):
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
        eventually(lambda: devices(pair) == ["lo", "lo"])


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
    link = RunningLink(pair.folder, started.name)
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
        "set a-to-b rate=5 b-to-a loss=x",
        "set rate=5",
        "set c rate=5",
        "set",
        "cut a-to-b",
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
        ((LinkEnd(a, "wan0"), LinkEnd(b, "other")), "wan0: cannot make it"),
        ((LinkEnd(a, "other"), LinkEnd(b, "wan0")), "wan0: cannot make it"),
        ((LinkEnd(a, "other"), LinkEnd("/run/netns/nowhere", "other")), "/run/netns/nowhere"),
        ((LinkEnd(a, "a-name-far-too-long"), LinkEnd(b, "other")), "15 characters"),
        ((LinkEnd(a, "other", "02:00"), LinkEnd(b, "other")), "MAC"),
    ):
        with pytest.raises(LinkError, match=reason):
            EmulatedLink("second", pair.folder, *ends).start()
        assert devices(pair) == ["lo", "wan0", "lo", "wan0"]


def test_a_device_that_is_removed_ends_it_and_it_is_said_why(pair: Pair, eventually: Eventually) -> None:
    link = pair.start(OPEN, OPEN)
    with entered(pair.netns[1]):
        subprocess.run(["ip", "link", "del", "wan0"], check=True)
    eventually(lambda: devices(pair) == ["lo", "lo"])
    with pytest.raises(LinkError, match=r"does not answer .*it said: .*device wan0 was removed"):
        link.stats()


HINDERED = """
import resource, sys
from lab_pair import Pair
from mpx_lab.shape import Shape
for limit in (resource.RLIMIT_MEMLOCK, resource.RLIMIT_RTPRIO):
    resource.setrlimit(limit, (0, 0))
with Pair(sys.argv[1]) as pair:
    print(*pair.start(Shape(), Shape()).stats().hindrances, sep="\\n")
"""


@pytest.mark.parametrize("refused", ["sys_nice", "ipc_lock", "sys_nice,-ipc_lock"])
def test_what_the_kernel_refuses_it_is_told(pair: Pair, refused: str) -> None:
    without = ["setpriv", f"--bounding-set=-{refused}"]
    command = [*without, sys.executable, "-c", HINDERED, f"t{os.getpid()}-hinder"]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=with_path(), check=True).stdout
    assert ("real-time" in told, "swapped out" in told) == ("sys_nice" in refused, "ipc_lock" in refused)


def with_path() -> dict[str, str]:
    """The environment of a program that can import what this test can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


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
    name = f"t{os.getpid()}-killed"
    command = [sys.executable, "-c", KILLED, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=with_path()) as process:
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
