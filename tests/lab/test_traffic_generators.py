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
from mpx_lab.traffic.background import Background
from mpx_lab.traffic.spec import GENERATORS
from two_hosts import (
    HostInNamespace,
    left_running,
    made_two_hosts,  # noqa: F401  a fixture
    starts_and_is_killed,
)

from mpx.errors import MpxError

Hosts = tuple[HostInNamespace, HostInNamespace]
Eventually = Callable[..., None]


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


def edges(recorded: RecordedRun, stream: int = 0) -> list[tuple[float, int]]:
    rows = recorded.rows("flows/bg.phases.csv")
    return [(float(row["t_s"]), int(row["on"])) for row in rows if int(row["stream"]) == stream]


def kernels(recorded: RecordedRun) -> list[dict[str, str]]:
    """What the kernel of the sender said of its streams so far."""
    file = "flows/bg.tcp.csv"
    return recorded.rows(file) if (recorded.folder / file).exists() else []


def test_tcp_says_how_it_fills_the_link(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    """At which rate it does is seen in simulated time (test_simulated.py)."""

    def enough(recorded: RecordedRun) -> bool:
        wide = {row["stream"] for row in kernels(recorded) if int(row["cwnd_packets"]) > 10}
        return arrived(recorded) > 10_000_000 and len(wide) == 2

    spec = "tcp(congestion=cubic, streams=2)"
    recorded = carried(two_hosts, tmp_path, spec, enough, eventually)
    streams = recorded.streams("bg")
    assert sorted(streams) == [0, 1]
    assert sum(sample.size_bytes for stream in streams.values() for sample in stream) == arrived(recorded)
    kernel = kernels(recorded)
    assert {row["stream"] for row in kernel} == {"0", "1"}
    assert max(float(row["rtt_s"]) for row in kernel) > 0
    assert {row["bbr_pacing_gain"] for row in kernel} == {""}
    connections = summary(recorded)["connections"]
    assert isinstance(connections, list)
    assert [connection["congestion"] for connection in connections] == ["cubic", "cubic"]
    # Reset at the end: what was on its way then has no acknowledgement any more, or was not read any more.
    acked = sum(connection["bytes_acked"] for connection in connections)
    assert 0.5 * arrived(recorded) < acked < 1.9 * arrived(recorded)


def test_bbr_says_in_which_state_it_is(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    def gains(recorded: RecordedRun) -> set[float]:
        return {float(row["bbr_pacing_gain"]) for row in kernels(recorded) if row["bbr_pacing_gain"]}

    def enough(recorded: RecordedRun) -> bool:
        return len(gains(recorded)) > 1

    recorded = carried(two_hosts, tmp_path, "tcp(congestion=bbr)", enough, eventually)
    assert gains(recorded) <= {2.887, 0.344, 1.25, 0.75, 1.0}


def test_tcp_square_goes_and_comes_as_new_connections(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    """That nothing comes in its pauses is seen in simulated time (test_simulated.py)."""

    def twice(recorded: RecordedRun) -> bool:
        file = recorded.folder / "flows" / "bg.phases.csv"
        return file.exists() and len(edges(recorded)) >= 5

    recorded = carried(two_hosts, tmp_path, "tcp-square(on=400ms, off=600ms)", twice, eventually)
    assert [on for _, on in edges(recorded)[:5]] == [1, 0, 1, 0, 1]
    assert arrived(recorded) > 0
    connections = summary(recorded)["connections"]
    assert isinstance(connections, list)
    assert len(connections) >= 3


def test_rpc_has_no_more_blocks_under_way_than_slots(
    two_hosts: Hosts, tmp_path: Path, eventually: Eventually
) -> None:
    spec = "rpc(streams=2, block=20kB, slots=3)"

    def segment(recorded: RecordedRun) -> int:
        return max((int(row["mss_bytes"]) for row in kernels(recorded)), default=0)

    def sent(recorded: RecordedRun) -> int:
        looked = [(int(row["unacked_packets"]), int(row["unsent_bytes"])) for row in kernels(recorded)]
        return max((unacked * segment(recorded) + unsent for unacked, unsent in looked), default=0)

    def enough(recorded: RecordedRun) -> bool:  # more than the slots: they were answered
        return arrived(recorded) > 20 * 20_000 and len(recorded.streams("bg")) == 2 and sent(recorded) > 0

    recorded = carried(two_hosts, tmp_path, spec, enough, eventually)
    assert sorted(recorded.streams("bg")) == [0, 1]
    assert sent(recorded) <= 3 * 20_000 + 4 * segment(recorded)  # not all segments are full


def test_udt_brings_data_without_tcp(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    recorded = carried(two_hosts, tmp_path, "udt", lambda so_far: arrived(so_far) > 1_000_000, eventually)
    assert not (tmp_path / "flows" / "bg.tcp.csv").exists()
    assert [on for _, on in edges(recorded)] == [1, 0]


def test_udp_brings_all_it_sends(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    """At which rate is seen in simulated time (test_simulated.py)."""

    def enough(recorded: RecordedRun) -> bool:
        return arrived(recorded) > 1_000_000

    recorded = carried(two_hosts, tmp_path, "udp(rate=10Mbit/s)", enough, eventually)
    told = summary(recorded)
    sent, size = told["datagrams_sent"], told["datagram_bytes"]
    assert isinstance(sent, int)
    assert isinstance(size, int)
    assert arrived(recorded) == sent * size  # the link has room for all


@pytest.mark.parametrize(
    "spec",
    ["udp-square(rate=10Mbit/s, on=400ms, off=600ms)", "udp-bursty(rate=10Mbit/s, burst=400ms, period=1s)"],
)
def test_udp_on_and_off(two_hosts: Hosts, tmp_path: Path, eventually: Eventually, spec: str) -> None:
    """When they are on and off is seen in simulated time (test_simulated.py)."""

    def three_periods(recorded: RecordedRun) -> bool:
        file = recorded.folder / "flows" / "bg.phases.csv"
        return file.exists() and len(edges(recorded)) >= 7

    recorded = carried(two_hosts, tmp_path, spec, three_periods, eventually)
    assert [on for _, on in edges(recorded)[:7]] == [1, 0, 1, 0, 1, 0, 1]
    assert arrived(recorded) > 0


def test_short_flows_come_as_the_seed_says(two_hosts: Hosts, tmp_path: Path, eventually: Eventually) -> None:
    spec = "short-flows(load=0.3, of=50Mbit/s, largest=200kB, congestion=cubic, seed=5)"

    def ended(recorded: RecordedRun) -> list[dict[str, str]]:
        file = "flows/bg.flows.csv"
        rows = recorded.rows(file) if (recorded.folder / file).exists() else []
        return [row for row in rows if row["duration_s"]]

    recorded = carried(two_hosts, tmp_path, spec, lambda so_far: len(ended(so_far)) > 20, eventually)
    flows = recorded.rows("flows/bg.flows.csv")
    told = summary(recorded)
    assert told["broken"] == told["left_out"] == 0
    assert told["flows"] == len(flows)
    finished = [row for row in flows if row["duration_s"]]
    assert told["finished"] == len(finished) > 20
    sizes = sum(int(row["size_bytes"]) for row in finished)
    assert sizes <= arrived(recorded) <= sum(int(row["size_bytes"]) for row in flows)
    again = carried(two_hosts, tmp_path / "again", spec, lambda so_far: len(ended(so_far)) > 10, eventually)
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
    assert 0.5 * arrived(recorded) < acked < 1.9 * arrived(recorded)
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
        match=r"'nosuch' is not in this kernel \(available: .*reno.*\); "
        r"if it has the module, as root: modprobe tcp_nosuch",
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
