"""Every generator between two hosts: what it brought, when it sent, and that it ends. Bounds are wide."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_lab.dataset.acknowledged import acknowledged
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import Sample, goodput_bps
from mpx_lab.traffic.background import Background
from mpx_lab.traffic.spec import GENERATORS
from two_hosts import (
    RATE_BPS,
    HostInNamespace,
    left_running,
    made_two_hosts,  # noqa: F401  a fixture
    shape,
    starts_and_is_killed,
)

from mpx.errors import MpxError

Hosts = tuple[HostInNamespace, HostInNamespace]
Eventually = Callable[..., None]
UDP_RATE_BPS = 10e6


def arrived(recorded: RecordedRun) -> int:
    return sum(sample.size_bytes for sample in recorded.goodput("bg"))


def carried(
    hosts: Hosts, folder: Path, spec: str, enough: Callable[[RecordedRun], bool], eventually: Eventually
) -> RecordedRun:
    """Run a generator until what it wrote is enough."""
    source, sink = hosts
    recorded = RecordedRun(folder, {})
    with Background(spec, "bg", source, sink, sink.address, folder / "flows", time.monotonic()) as background:

        def done() -> bool:
            assert background.running
            return enough(recorded)

        eventually(done)
    return recorded


def summary(recorded: RecordedRun) -> dict[str, object]:
    read: dict[str, object] = json.loads((recorded.folder / "flows" / "bg.json").read_text())
    return read


def longer_than(duration_s: float) -> Callable[[RecordedRun], bool]:
    def enough(recorded: RecordedRun) -> bool:
        looks = recorded.goodput("bg")
        return bool(looks) and looks[-1].t_s - looks[0].t_s > duration_s

    return enough


def edges(recorded: RecordedRun, stream: int = 0) -> list[tuple[float, int]]:
    rows = recorded.rows("flows/bg.phases.csv")
    return [(float(row["t_s"]), int(row["on"])) for row in rows if int(row["stream"]) == stream]


def test_tcp_fills_the_link_and_says_how(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    spec = "tcp(congestion=cubic, streams=2)"
    recorded = carried(two_hosts, tmp_path, spec, longer_than(3), eventually)
    series = recorded.goodput("bg")
    assert 0.5 * RATE_BPS < goodput_bps(series, series[0].t_s + 1, series[-2].t_s) < 1.05 * RATE_BPS
    streams = recorded.streams("bg")
    assert sorted(streams) == [0, 1]
    assert sum(sample.size_bytes for stream in streams.values() for sample in stream) == arrived(recorded)
    kernel = recorded.rows("flows/bg.tcp.csv")
    assert {row["stream"] for row in kernel} == {"0", "1"}
    assert max(int(row["cwnd_packets"]) for row in kernel) > 10
    assert max(float(row["rtt_s"]) for row in kernel) > 0
    assert {row["bbr_pacing_gain"] for row in kernel} == {""}
    connections = summary(recorded)["connections"]
    assert isinstance(connections, list)
    assert [connection["congestion"] for connection in connections] == ["cubic", "cubic"]
    # Reset at the end, so what was on its way then has no acknowledgement any more.
    acked = sum(connection["bytes_acked"] for connection in connections)
    assert 0.5 * arrived(recorded) < acked < 1.01 * arrived(recorded) + 1000


def test_bbr_says_in_which_state_it_is(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    recorded = carried(two_hosts, tmp_path, "tcp(congestion=bbr)", longer_than(1), eventually)
    gains = {float(row["bbr_pacing_gain"]) for row in recorded.rows("flows/bg.tcp.csv")}
    assert gains
    assert gains <= {2.887, 0.344, 1.25, 0.75, 1.0}


def test_tcp_square_goes_and_comes_as_new_connections(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    def twice(recorded: RecordedRun) -> bool:
        file = recorded.folder / "flows" / "bg.phases.csv"
        return file.exists() and len(edges(recorded)) >= 5

    rate_bps = 10e6  # so slow that what is unsent when "on" ends would take much of the pause
    shape(two_hosts[0], rate_bps)
    recorded = carried(two_hosts, tmp_path, "tcp-square(on=400ms, off=600ms)", twice, eventually)
    seen = edges(recorded)
    assert [on for _, on in seen[:5]] == [1, 0, 1, 0, 1]
    series = recorded.goodput("bg")
    for (on_s, _), (off_s, _), (again_s, _) in zip(seen[0::2], seen[1::2], seen[2::2], strict=False):
        while_on = goodput_bps(series, on_s, off_s + 0.1)
        pause = goodput_bps(series, off_s + 0.25, again_s - 0.15)  # looks are 100 ms apart
        assert while_on > 0.2 * rate_bps
        assert pause < 0.01 * rate_bps
    connections = summary(recorded)["connections"]
    assert isinstance(connections, list)
    assert len(connections) >= 3


def test_rpc_has_no_more_blocks_under_way_than_slots(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    spec = "rpc(streams=2, block=20kB, slots=3)"
    recorded = carried(two_hosts, tmp_path, spec, longer_than(3), eventually)
    assert sorted(recorded.streams("bg")) == [0, 1]
    assert arrived(recorded) > 20 * 20_000  # more than the slots: they were answered
    kernel = recorded.rows("flows/bg.tcp.csv")
    segment = max(int(row["mss_bytes"]) for row in kernel)
    sent = [int(row["unacked_packets"]) * segment + int(row["unsent_bytes"]) for row in kernel]
    assert 0 < max(sent) <= 3 * 20_000 + 4 * segment  # not all segments are full


def test_udt_brings_data_without_tcp(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    recorded = carried(two_hosts, tmp_path, "udt", lambda so_far: arrived(so_far) > 1_000_000, eventually)
    assert not (tmp_path / "flows" / "bg.tcp.csv").exists()
    assert [on for _, on in edges(recorded)] == [1, 0]


def test_udp_brings_its_rate(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    recorded = carried(two_hosts, tmp_path, "udp(rate=10Mbit/s)", longer_than(3), eventually)
    told = summary(recorded)
    sent, size = told["datagrams_sent"], told["datagram_bytes"]
    assert isinstance(sent, int)
    assert isinstance(size, int)
    assert arrived(recorded) == sent * size  # the link has room for all
    began_s, ended_s = edges(recorded)[0][0], edges(recorded)[-1][0]
    given_up = told["datagrams_given_up"]
    assert isinstance(given_up, int)
    offered = (sent + given_up) * size * 8 / (ended_s - began_s)
    assert offered == pytest.approx(UDP_RATE_BPS, rel=0.02)


@pytest.mark.parametrize(
    "spec",
    ["udp-square(rate=10Mbit/s, on=400ms, off=600ms)", "udp-bursty(rate=10Mbit/s, burst=400ms, period=1s)"],
)
def test_udp_on_and_off(two_hosts: Hosts, tmp_path: Path, eventually: Eventually, spec: str) -> None:
    def three_periods(recorded: RecordedRun) -> bool:
        file = recorded.folder / "flows" / "bg.phases.csv"
        return file.exists() and len(edges(recorded)) >= 7

    recorded = carried(two_hosts, tmp_path, spec, three_periods, eventually)
    seen = edges(recorded)[:7]
    assert [on for _, on in seen] == [1, 0, 1, 0, 1, 0, 1]
    # A busy machine delays an edge, hardly all of them: the best of three periods is as the pattern says.
    times_s = [at_s for at_s, _ in seen]
    on_s = [off - on for on, off in zip(times_s[0::2], times_s[1::2], strict=False)]
    period_s = [after - on for on, after in zip(times_s[0::2], times_s[2::2], strict=False)]
    assert min(on_s, key=lambda each: abs(each - 0.4)) == pytest.approx(0.4, abs=0.1)
    assert min(period_s, key=lambda each: abs(each - 1.0)) == pytest.approx(1.0, abs=0.1)
    series = recorded.goodput("bg")
    assert sum_between(series, seen[1][0] + 0.15, seen[2][0] - 0.15) == 0
    assert arrived(recorded) > 0


def sum_between(series: list[Sample], begin_s: float, end_s: float) -> int:
    """Sum the looks that lie wholly in between."""
    return sum(sample.size_bytes for sample in series if begin_s + 0.11 < sample.t_s < end_s)


def test_short_flows_come_as_the_seed_says(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    spec = "short-flows(load=0.3, of=50Mbit/s, largest=200kB, congestion=cubic, seed=5)"
    recorded = carried(two_hosts, tmp_path, spec, longer_than(2.5), eventually)
    flows = recorded.rows("flows/bg.flows.csv")
    told = summary(recorded)
    assert told["broken"] == told["left_out"] == 0
    assert told["flows"] == len(flows)
    finished = [row for row in flows if row["duration_s"]]
    assert told["finished"] == len(finished) > 20
    sizes = sum(int(row["size_bytes"]) for row in finished)
    assert sizes <= arrived(recorded) <= sum(int(row["size_bytes"]) for row in flows)
    again = carried(two_hosts, tmp_path / "again", spec, longer_than(1), eventually)
    by_due = sorted(flows, key=lambda row: float(row["due_s"]))
    by_due_again = sorted(again.rows("flows/bg.flows.csv"), key=lambda row: float(row["due_s"]))
    assert [row["size_bytes"] for row in by_due[:10]] == [row["size_bytes"] for row in by_due_again[:10]]


def test_gridftp_is_a_real_copy(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    def enough(recorded: RecordedRun) -> bool:
        return arrived(recorded) > 20_000_000

    recorded = carried(two_hosts, tmp_path, "gridftp(streams=3, congestion=cubic)", enough, eventually)
    assert summary(recorded)["copies"] == 1
    each = [sum(sample.size_bytes for sample in series) for series in recorded.streams("bg").values()]
    busy = [size for size in each if size > 100_000]  # the others are control connections
    assert len(busy) >= 3
    sent = recorded.rows("flows/bg.tcp.csv")
    assert (
        len({row["stream"] for row in sent if row["congestion"] == "cubic"}) >= 3
    )  # numbered as they are seen
    acked = sum(sample.size_bytes for sample in acknowledged(sent))
    assert 0.5 * arrived(recorded) < acked < 1.01 * arrived(recorded) + 1000
    kept = {file.name for file in (tmp_path / "flows").iterdir()}
    assert not {"bg.sink", "bg.source"} & kept


def test_a_generator_begins_no_earlier_than_it_is_told(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    source, sink = two_hosts
    recorded, epoch_s, from_s = RecordedRun(tmp_path, {}), time.monotonic(), 2.5
    specs = (
        "tcp-square(on=200ms, off=600ms)",
        "tcp-square(on=200ms, off=600ms, after=400ms)",
        "udp(rate=1Mbit/s)",
    )

    def began(name: str) -> list[float]:
        file = f"flows/{name}.phases.csv"
        if not (tmp_path / file).exists():
            return []
        return [float(row["t_s"]) for row in recorded.rows(file) if row["on"] == "1"]

    with contextlib.ExitStack() as running:
        for name, spec in zip("abc", specs, strict=True):
            folder = tmp_path / "flows"
            made = Background(spec, name, source, sink, sink.address, folder, epoch_s, from_s=from_s)
            running.enter_context(made)
        eventually(lambda: all(map(began, "abc")))
    assert [from_s + 0.4 * (name == "b") <= began(name)[0] for name in "abc"] == [True] * 3
    told = json.loads((tmp_path / "flows" / "a.json").read_text())
    assert told["began_s"] == pytest.approx(from_s)


def test_nothing_is_imported_from_the_current_folder(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for module in ("argparse", "re", "socket"):
        (elsewhere / f"{module}.py").write_text("raise SystemExit('imported from the current folder')\n")
    monkeypatch.chdir(elsewhere)
    carried(
        two_hosts, tmp_path, "gridftp(streams=1)", lambda recorded: arrived(recorded) > 1_000_000, eventually
    )


def test_ipv6(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    source, sink = two_hosts
    for spec in ("udp(rate=10Mbit/s)", "tcp"):
        recorded = RecordedRun(tmp_path / spec[:3], {})
        folder = recorded.folder / "flows"
        with Background(spec, "bg", source, sink, sink.address_v6, folder, time.monotonic()):
            eventually(lambda recorded=recorded: arrived(recorded) > 100_000)


def test_a_generator_that_cannot_start_says_why(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    source, sink = two_hosts
    with pytest.raises(MpxError, match=r"receiver did not start: .*cannot listen on 192\.0\.2\.7"):
        Background("tcp", "bg", source, sink, "192.0.2.7", tmp_path, 0.0).start()
    lost = Background("tcp(congestion=nosuch)", "bg", source, sink, sink.address, tmp_path, 0.0)
    lost.start()
    eventually(lambda: not lost.running)
    with pytest.raises(
        MpxError,
        match=r"'nosuch' is not in this kernel .*reno.*; if it has the module, as root: modprobe tcp_nosuch",
    ):
        lost.stop()


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_nothing_is_left_when_the_parent_is_gone(
    two_hosts: Hosts,
    tmp_path: Path,
    eventually: Eventually,
    name: str,
) -> None:
    source, sink = two_hosts
    starts_and_is_killed(name, source, sink, tmp_path)
    eventually(lambda: not left_running(source) and not left_running(sink))


def test_a_gridftp_receiver_that_is_killed_leaves_no_server(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    source, sink = two_hosts
    background = Background("gridftp", "bg", source, sink, sink.address, tmp_path, time.monotonic())
    background.start()
    eventually(lambda: len(left_running(sink)) == 2)
    parents = {pid: Path(f"/proc/{pid}/status").read_text() for pid in left_running(sink)}
    (receiver,) = (pid for pid in parents if any(f"PPid:\t{pid}\n" in text for text in parents.values()))
    os.kill(int(receiver), signal.SIGKILL)
    eventually(lambda: not left_running(sink))
    with pytest.raises(MpxError, match="failed"):
        background.stop()
    assert not left_running(source)
