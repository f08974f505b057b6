"""What the kernel's counters say: processors, devices, queues, sockets."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab import cpu
from mpx_lab.counters import increase, parse_backlog, parse_devices, parse_queues, parse_sockets
from mpx_lab.cpu import busy_over, parse_stat, use_between

STAT = """cpu  100 10 50 800 20 5 10 5 0 0
cpu0 60 5 25 400 10 5 5 0 0 0
cpu1 40 5 25 400 10 0 5 5 0 0
intr 12345 0
ctxt 99
"""
LATER = STAT.replace("cpu0 60 5 25 400 10 5 5 0", "cpu0 90 5 45 440 9 6 9 6")

DEVICES = """Inter-|   Receive                                        |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier
    lo:    0    0    0    0    0     0          0         0        0    0    0    0    0     0       0 0
  eth0: 1000    9    1   77    2     0          0         0     2000    8    3    4    5     0       0 0
"""
SOCKETS = """Ip: Forwarding DefaultTTL
Ip: 2 64
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
Udp: 100 0 7 90 7 1 0
TcpExt: SyncookiesSent RcvPruned ListenDrops TCPBacklogDrop TCPRcvQDrop
TcpExt: 0 4 3 2 1
Udp6InDatagrams                 	55
Udp6RcvbufErrors                	6
"""


def test_what_was_dropped_between_the_ends_of_cables_is_counted_for_all_processors() -> None:
    text = "0001e240 0000000a 00000000 0000\n00000010 00000001 00000002 0000\n"
    assert parse_backlog(text) == {"machine packet backlog drops": 11}


def test_processors() -> None:
    before, after = parse_stat(STAT), parse_stat(LATER)
    assert list(before) == ["all", "0", "1"]
    uses = {use.core: use for use in use_between(3.0, before, after)}
    core = uses["0"]  # 30 user, 20 system, 40 idle, 1 + 4 interrupts, 6 stolen, waiting ran backwards
    total = 30 + 20 + 40 + 5 + 6
    assert core.user == 30 / total
    assert core.system == 20 / total
    assert core.interrupts == 5 / total
    assert core.steal == 6 / total
    assert core.idle == 40 / total
    assert uses["1"].idle == 1  # nothing counted in so short a time
    assert [use.core for use in use_between(0, before, after)] == ["all", "0", "1"]


counters = st.lists(st.integers(0, 10**9), min_size=8, max_size=8).map(tuple)


@given(counters, counters)
def test_shares_add_up_to_one(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    (use,) = use_between(0, {"all": before}, {"all": after})
    assert abs(use.user + use.system + use.interrupts + use.steal + use.idle - 1) < 1e-9
    assert -1e-9 <= use.busy <= 1


def test_busy_is_what_all_processors_did_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(cpu, "_STAT", stat)
    stat.write_text("cpu  100 10 50 800 20 5 10 5 0 0\n")

    def wait(seconds: float) -> None:
        assert seconds == 5.0
        stat.write_text("cpu  150 10 70 820 30 5 10 5 0 0\n")

    assert busy_over(5.0, wait) == pytest.approx(0.7)


def test_devices_without_what_nobody_listens_for_and_what_is_told_elsewhere() -> None:
    found = parse_devices(DEVICES)
    assert {name: count for name, count in found.items() if count} == {
        "eth0 receive errors": 1,
        "eth0 receive overruns": 2,
        "eth0 send errors": 3,
        "eth0 send overruns": 5,
    }
    assert found["lo send errors"] == 0


def test_sockets() -> None:
    assert parse_sockets(SOCKETS) == {
        "Udp RcvbufErrors": 7,
        "TcpExt RcvPruned": 4,
        "TcpExt ListenDrops": 3,
        "TcpExt TCPBacklogDrop": 2,
        "TcpExt TCPRcvQDrop": 1,
        "Udp6 RcvbufErrors": 6,
    }


def test_queues() -> None:
    shaped = '{"kind":"tbf","dev":"eth0","drops":9},{"kind":"tbf","dev":"eth0","drops":1}'
    assert parse_queues(f'[{{"kind":"noqueue","dev":"lo"}},{shaped}]') == {
        "eth0 queue tbf drops": 10,
        "lo queue noqueue drops": 0,
    }
    assert parse_queues("") == {}


def test_increase() -> None:
    assert increase({"a": 1, "b": 2}, {"a": 1, "b": 5, "new": 1, "none": 0}) == {"b": 3, "new": 1}
