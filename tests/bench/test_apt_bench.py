"""How the benches of GridFTP-APT read series and judge them, on invented ones; no lab is needed."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apt.cell import Cell, Link
from apt.claims import best_fixed, claims_of, read, steady_bps
from apt.measure import ENDING_S, Goodput, interval, rank_correlation, reached_s, since_first_byte
from apt.schedule import run_all
from apt.sharing import fairness, least_fairness, unexplained
from apt.store import Result, Transfer
from apt.tools import PAPER, TOOLS, command_of, fixed, is_mpx, plain_spec
from hypothesis import given
from hypothesis import strategies as st
from lab_peers import LINKS, Peers, judge
from lab_peers import TOOLS as TRIED
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import Sample

LINK = Link()
TICK_S = 0.1


def goodput(rate_at: Callable[[float], float], seconds: float) -> Goodput:
    """A transfer whose rate at each moment is given, bit/s."""
    ticks = range(1, round(seconds / TICK_S) + 1)
    later = [Sample(i * TICK_S, round(rate_at((i - 0.5) * TICK_S) * TICK_S / 8)) for i in ticks]
    return Goodput([Sample(0.0, 0), *later])


def result(*rates: Callable[[float], float], seconds: float = 90, streams: Any = ()) -> Result:
    run = RecordedRun(Path("/nowhere"), {"parameters": {}})
    return Result(run, [Transfer(0.0, goodput(rate, seconds), streams) for rate in rates])


def steady(rate_bps: float) -> Result:
    return result(lambda _: rate_bps)


def test_what_comes_before_the_first_byte_and_at_the_end_is_left_out() -> None:
    said = [
        Sample(0.0, 0),
        Sample(1.0, 5_000),
        Sample(1.1, 20_000),
        Sample(1.2, 500_000),
        Sample(1.3, 500_000),
    ]
    said += [Sample(1.31 + ENDING_S, 0)]
    began_s, found = since_first_byte(said)
    assert began_s == 1.1
    assert found.end_s == pytest.approx(0.2)
    assert found.mean_bps(0, found.end_s) == pytest.approx(8 * 1_000_000 / 0.2)
    with pytest.raises(ValueError, match="nothing"):
        since_first_byte(said[:3])


def test_a_rate_is_reached_when_it_is_held_for_a_second() -> None:
    found = goodput(lambda t: 100.0e6 if 3 <= t < 3.5 or t >= 6 else 10.0e6, 10)
    assert reached_s(found.risen(), 90e6) == pytest.approx(6.9)  # the end of that second
    assert reached_s(found.risen(), 200e6) == float("inf")


def test_a_long_run_is_steady_after_a_minute_and_a_short_one_in_its_last_half() -> None:
    assert steady_bps(result(lambda t: 1e6 if t < 60 else 3e6)) == pytest.approx(3e6, rel=0.01)
    assert steady_bps(result(lambda t: 1e6 if t < 8 else 3e6, seconds=16)) == pytest.approx(3e6, rel=0.01)


def test_the_papers_tuner_is_steady_when_its_search_has_ended() -> None:
    """Ours never ends, and neither does a search that takes too long: the last 15 s are called steady."""

    def found(tool: str, *changes: tuple[float, int]) -> Result:
        run = RecordedRun(Path("/nowhere"), {"parameters": {"tool": tool}})
        return Result(run, [Transfer(0.0, goodput(lambda t: 1e6 if t < 70 else 3e6, 90), changes)])

    settled = found(PAPER, (0.0, 4), (69.9, 32), (80.0, 32))
    assert steady_bps(settled) == pytest.approx(3e6, rel=0.01) and settled.late_streams() == 32
    assert steady_bps(found(PAPER, (0.0, 4), (50.0, 32))) == pytest.approx(7e6 / 3, rel=0.01)
    assert steady_bps(found(PAPER, (0.0, 4), (89.0, 32))) == pytest.approx(3e6, rel=0.01)
    ours = found("auto", (0.0, 4), (69.9, 32))
    assert steady_bps(ours) == pytest.approx(7e6 / 3, rel=0.01) and ours.late_streams() < 32


def test_the_best_fixed_number_is_the_fewest_of_those_that_are_as_good() -> None:
    runs = {fixed(n): [read(steady(bps))] for n, bps in ((8, 80e6), (16, 99.5e6), (32, 100e6), (64, 90e6))}
    assert best_fixed({**runs, "auto": [read(steady(200e6))]}) == (16, pytest.approx(100e6, rel=0.01))


@pytest.mark.parametrize(
    ("rate", "kept"),
    [
        (lambda t: 100e6, [True, True, True]),
        (lambda t: 10e6 if t < 4 else 100e6, [False, True, True]),
        (lambda t: 89e6, [False, False, False]),
        (lambda t: 100e6 if t < 60 else 95e6, [True, True, False]),
        (lambda t: 100e6 if t < 40 else 70e6, [True, False, False]),
    ],
)
def test_the_claims_fail_where_they_do_not_hold(rate: Callable[[float], float], kept: list[bool]) -> None:
    by_tool = {fixed(8): [read(steady(100e6))] * 3, "auto": [read(result(rate))] * 3}
    assert [verdict.kept for verdict in claims_of(LINK, by_tool)] == kept


def test_one_slow_repetition_of_three_breaks_the_claim_of_the_worst() -> None:
    slow = result(lambda t: 10e6 if t < 6 else 100e6)
    by_tool = {fixed(8): [read(steady(100e6))], "auto": list(map(read, [steady(100e6)] * 2 + [slow]))}
    assert [verdict.kept for verdict in claims_of(LINK, by_tool)] == [False, True, True]


@pytest.mark.parametrize(("wait_s", "kept"), [(0.0, True), (0.5, True), (0.7, False)])
def test_tools_are_compared_from_their_start(wait_s: float, kept: bool) -> None:
    def found(tool: str) -> Result:
        began_s = wait_s if tool.startswith("auto") else 0.0
        carried = goodput(lambda _: 100e6, 21 - began_s)
        return Result(RecordedRun(Path("/nowhere"), {}), [Transfer(began_s, carried, [], started_s=0.0)])

    results = {(link, tool): [found(tool)] for link in LINKS.values() for tool in TRIED}
    verdicts = list(judge(Peers().measured(results)))
    assert [verdict.kept for verdict in verdicts] == [kept] * 2 * len(LINKS)


def test_streams_are_averaged_over_time_and_not_looked_at_once() -> None:
    transfer = Transfer(0.0, goodput(lambda _: 1e6, 90), [(0.0, 4), (60.0, 10), (85.0, 40)])
    assert transfer.mean_streams(60.0, 90.0) == pytest.approx((25 * 10 + 5 * 40) / 30)
    assert transfer.mean_streams(0.0, 50.0) == 4
    assert Transfer(0.0, goodput(lambda _: 1e6, 9), []).mean_streams(0.0, 9.0) is None


def test_fairness_is_that_of_the_settled_time_and_its_least_that_of_ten_seconds() -> None:
    equal = result(lambda t: 10e6, lambda t: 90e6 if t < 30 else 10e6)
    assert fairness(equal, 2) == pytest.approx(1.0)
    swing = result(lambda t: 20e6 if t < 60 else 10e6, lambda t: 10e6 if t < 60 else 20e6)
    assert fairness(swing, 2) == pytest.approx(1.0)
    assert least_fairness(swing, 2) == pytest.approx(0.9, abs=0.01)


def test_shares_that_follow_the_streams_are_explained_by_them() -> None:
    run = RecordedRun(Path("/nowhere"), {"parameters": {}})
    both = [
        Transfer(0.0, goodput(lambda _: 30e6, 90), [(0.0, 30)]),
        Transfer(0.0, goodput(lambda _: 10e6, 90), [(0.0, 10)]),
    ]
    by_streams, by_heads = unexplained(Result(run, both))
    assert by_streams == pytest.approx(0, abs=0.001)
    assert by_heads == pytest.approx(0.25, abs=0.001)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20, unique=True))
def test_ranks_agree_with_what_rises_and_disagree_with_what_falls(xs: list[int]) -> None:
    assert rank_correlation(xs, [x**3 for x in xs]) == pytest.approx(1)
    assert rank_correlation(xs, [-x for x in xs]) == pytest.approx(-1)
    assert rank_correlation(xs, [7] * len(xs)) == 0


def test_the_interval_of_a_mean() -> None:
    mean, half = interval([1.0, 2.0, 3.0])
    assert (mean, round(half, 2)) == (2.0, 2.48)  # t = 4.30 with two degrees of freedom
    assert interval([5.0])[1] == float("inf")


def test_cells_are_told_apart_by_all_that_they_are() -> None:
    cells = [
        Cell(link, tool, seconds, turn, transfers, every_s)
        for link in (
            LINK,
            Link(loss=0.001),
            Link(udp_share=0.5),
            Link(window_bytes=None),
            Link(congestion="bbr"),
        )
        for tool in ("auto", fixed(8))
        for seconds in (10, 12)
        for turn in (1, 2)
        for transfers, every_s in ((1, 0.0), (4, 45.0), (4, 100.0))
    ]
    assert len({cell.name for cell in cells}) == len(cells)


def test_no_two_cells_have_a_slot_or_more_of_the_machine_than_there_is() -> None:
    lock, under_way, most, seen = threading.Lock(), {}, [0], []

    def run(cell: Cell, slot: int) -> None:
        with lock:
            assert slot not in under_way
            under_way[slot] = cell.link.rate_bps
            most[0] = max(most[0], sum(under_way.values()))
        with lock:
            seen.append(cell)
            del under_way[slot]

    cells = [Cell(Link(rate_bps=rate), "auto", i) for i, rate in enumerate((100_000_000, 300_000_000) * 10)]
    run_all(cells, run, at_once=3)
    assert sorted(seen, key=lambda cell: cell.seconds) == cells
    assert most[0] <= 400_000_000


def test_a_cell_that_cannot_be_measured_does_not_keep_the_others_from_it() -> None:
    done = []

    def run(cell: Cell, _: int) -> None:
        if cell.tool == "auto":
            raise RuntimeError(cell.tool)
        done.append(cell.tool)

    failed = run_all([Cell(LINK, tool, 1) for tool in ("guc", "auto", "paper")], run, at_once=2)
    assert sorted(done) == ["guc", "paper"] and [str(error) for error in failed] == ["auto"]


def test_a_mistake_of_the_bench_is_raised() -> None:
    def run(cell: Cell, _: int) -> None:
        raise ValueError(cell.tool)

    with pytest.raises(ValueError, match="auto"):
        run_all([Cell(LINK, "auto", 1)], run, at_once=2)


@pytest.mark.parametrize(
    "tool",
    [
        name.replace("-N", "-7").replace("pN", "p7")
        for name in TOOLS
        if "[" not in name and not plain_spec(name) and not name.startswith(("lftp", "rclone"))
    ],
)
def test_every_tool_has_a_command(tool: str) -> None:
    from_root = tool.startswith(("curl", "aria2"))  # others would begin in the login folder
    assert command_of(tool, "/a", "ftp://h/b", "/r")[-1] == f"ftp://h/{'%2F' if from_root else ''}b"
    assert command_of("auto-down", "/a", "ftp://h/b", "/r")[-2:] == ["ftp://h/b", "/a"]
    assert command_of("guc-p7-down", "/a", "ftp://h/b", "/r")[1:] == ["-p", "7", "ftp://h/b", "file:///a"]
    with pytest.raises(ValueError, match="none of"):
        command_of("nothing", "/a", "ftp://h/b", "/r")


def test_commands_of_tools_with_a_language_of_their_own() -> None:
    assert command_of("lftp-down", "/a", "ftp://h:1/b", "/r")[2].endswith("pget -n 16 ftp://h:1/%2Fb -o /a")
    rclone = command_of("rclone-down", "/a", "ftp://h:1/b", "/r")
    assert rclone[-2:] == [":ftp:/b", "/a"] and {"--ftp-host=h", "--ftp-port=1"} <= set(rclone)


def test_a_plain_tool_is_a_generator() -> None:
    assert (plain_spec("plain"), plain_spec("auto")) == ("tcp", None)
    assert plain_spec("plain-bbr") == "tcp(congestion=bbr, streams=1)"
    assert plain_spec("plain-cubic-4") == "tcp(congestion=cubic, streams=4)"
    assert plain_spec("udt") == "udt"


def test_mpx_is_told_what_to_choose_and_else_what_the_routes_say() -> None:
    def said(tool: str) -> str:
        return " ".join(command_of(tool, "/a", "ftp://h/b", "/r"))

    assert "--congestion kernel" in said("auto") and "--congestion kernel" in said(PAPER)
    assert "--policy scavenger" in said("mpx-scavenger") and "--congestion" not in said("mpx-scavenger")
    assert "--congestion bbr --streams 2" in said("mpx-bbr-2")
    assert "--rate 20kbit/s" in said("mpx-idle")
    assert all(map(is_mpx, ("mpx-fair", "mpx-idle", "auto"))) and not is_mpx("plain-cubic")


def test_those_beside_a_tool_have_names() -> None:
    link = Link(beside="tcp(congestion=bbr) + tcp(congestion=cubic)")
    assert link.neighbours == {"beside": "tcp(congestion=bbr)", "beside-2": "tcp(congestion=cubic)"}
    assert Link().neighbours == {}
