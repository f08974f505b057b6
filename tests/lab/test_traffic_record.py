"""A whole run between two hosts: any program's flow, round-trip times, what was lost where, in one folder."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_lab.counters import increase, read_counters
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.route_list import Route
from mpx_lab.traffic.background import Background, RttProbe, Watched
from mpx_lab.validity import judge
from two_hosts import RATE_BPS, HostInNamespace, left_running, made_two_hosts  # noqa: F401  a fixture

from mpx.errors import MpxError

Hosts = tuple[HostInNamespace, HostInNamespace]
Eventually = Callable[..., None]

# A program that knows nothing of us: brings some bytes, and says when it is through.
FOREIGN_SINK = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
received = 0
while piece := connection.recv(1 << 16):
    received += len(piece)
print(received, flush=True)
"""
FOREIGN_SOURCE = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.sendall(bytes(int(sys.argv[3])))
"""


def test_one_run(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    source, sink = two_hosts
    folder = tmp_path / "run"
    size = 3_000_000
    with Run(folder, "test", {"size": size}, routes=[Route("source", None, "bbr")]) as run:
        before = read_counters(sink)
        with (
            RttProbe("path", source, sink, sink.address, run.rtt, run.epoch_s),
            Background("udp(rate=5Mbit/s)", "udp", source, sink, sink.address, run.flows, run.epoch_s),
            Watched("foreign", source, source.address, sink, sink.address, run.flows, run.epoch_s),
        ):
            foreign = sink.popen([sys.executable, "-c", FOREIGN_SINK, sink.address], stdout=subprocess.PIPE)
            with foreign:
                assert foreign.stdout is not None
                port = foreign.stdout.readline().decode().strip()
                command = [sys.executable, "-c", FOREIGN_SOURCE, sink.address, port, str(size)]
                with source.popen(command) as sending:
                    assert foreign.stdout.readline() == b"%d\n" % size
                assert sending.returncode == 0
            recorded = RecordedRun(folder, {})

            def complete() -> bool:
                arrived = sum(sample.size_bytes for sample in recorded.goodput("foreign"))
                return arrived in (size, size + 1) and len(recorded.probes("path")) >= 10

            eventually(complete)
        run.validity = judge([], run.cpu.uses, increase(before, read_counters(sink)))
    recorded = RecordedRun.open(folder)
    assert recorded.flows() == ["foreign", "udp"]
    assert recorded.about["validity"]["measures"]["lost"] == {}
    # Its connections have ended by now, and their last bytes were counted all the same.
    streams = recorded.streams("foreign").values()
    # The kernel counts the end of a connection as one byte.
    arrived = sum(sample.size_bytes for series in streams for sample in series)
    assert arrived in (size, size + 1)
    kernel = recorded.rows("flows/foreign.tcp.csv")
    assert {row["congestion"] for row in kernel} <= {"bbr", "cubic", "reno"}
    assert max(int(row["bytes_acked"]) for row in kernel) > 0
    answered = [probe for probe in recorded.probes("path") if probe.rtt_s is not None]
    assert len(answered) >= 10
    for probe in answered:
        assert probe.noise_s is not None
        assert probe.rtt_s is not None
        assert 0 < probe.noise_s <= probe.rtt_s + 1e-4


def test_a_full_queue_shows_in_the_round_trip_time_and_in_the_counters(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    source, sink = two_hosts
    before = read_counters(source)
    recorded = RecordedRun(tmp_path, {})
    epoch_s = time.monotonic()
    with (
        RttProbe("path", source, sink, sink.address, tmp_path / "rtt", epoch_s),
        Background("udp(rate=80Mbit/s)", "udp", source, sink, sink.address, tmp_path / "flows", epoch_s),
    ):
        eventually(lambda: len(recorded.probes("path")) >= 30)
    slowest = max(probe.rtt_s or 0 for probe in recorded.probes("path"))
    assert 0.03 < slowest < 3  # the queue holds 50 ms
    lost = increase(before, read_counters(source))
    assert lost["eth0 queue tbf drops"] > 0
    told = json.loads((tmp_path / "flows" / "udp.json").read_text())
    arrived = sum(sample.size_bytes for sample in recorded.goodput("udp"))
    assert arrived < told["datagrams_sent"] * told["datagram_bytes"]
    series = recorded.goodput("udp")
    assert arrived * 8 / (series[-1].t_s - series[0].t_s) < RATE_BPS


def test_a_probe_that_nobody_answers_is_recorded_as_lost(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    source, _ = two_hosts
    words = ["--to", "10.9.0.2:9", "--folder", str(tmp_path / "rtt"), "--name", "nobody", "--epoch-s", "0"]
    command = [sys.executable, "-m", "mpx_lab.traffic.prober", *words]
    with source.popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as prober:
        file = tmp_path / "rtt" / "nobody.csv"
        eventually(lambda: file.exists() and len(RecordedRun(tmp_path, {}).probes("nobody")) >= 2)
    assert prober.returncode == 0
    assert all(probe.rtt_s is None for probe in RecordedRun(tmp_path, {}).probes("nobody"))


def test_a_receiver_that_dies_is_noticed(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    source, sink = two_hosts
    background = Background("tcp", "bg", source, sink, sink.address, tmp_path, time.monotonic())
    background.start()
    (receiver,) = left_running(sink)
    subprocess.run(["kill", "-9", receiver], check=True)
    eventually(lambda: not background.running)
    sender = r"sender failed with exit code 6: .*(lost its stream 0|cannot connect)"
    # The sender may not have connected yet, or be told to end before it has noticed.
    with pytest.raises(MpxError, match=f"{sender}|receiver failed with exit code -9"):
        background.stop()
    assert not left_running(source)
