"""What a dataset is made of: links, recipes, and when everything in a run happens. No lab is needed."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from mpx_lab.dataset.collect import CAPACITY_BPS, OVERHEAD_S, wall_s
from mpx_lab.dataset.draws import (
    DIPS,
    LINKS,
    MIXES,
    OUTSIDE_KINDS,
    OWN_CONGESTIONS,
    OWN_STREAMS,
    PAPER_CELL,
    PAPER_PIECE_S,
    PAPER_PIECES,
    PARTS,
    PASSIVE,
    recipes,
)
from mpx_lab.dataset.generators import generators
from mpx_lab.dataset.links import NEAR_QUEUE_MS, NEAR_RTT_MS, QUEUE_BDP, RATE_MBPS, RTT_MS, Wan, draw_links
from mpx_lab.dataset.outside import outside
from mpx_lab.dataset.recipe import BETWEEN_S, LEAD_S, STAGGER_S, Recipe, Series, Stretch
from mpx_lab.traffic.schedule import phases
from mpx_lab.traffic.spec import ShortFlows, Tcp, TcpSquare, Udp, UdpBursty, parse

from mpx.errors import UsageError

ALL = recipes(PARTS, 30, 1)


def test_the_same_seed_gives_the_same_runs_and_more_links_only_add_some() -> None:
    few, more = recipes(PARTS, 3, 7), recipes(PARTS, 5, 7)
    assert few == recipes(PARTS, 3, 7) and set(few) < set(more)
    others = {recipe.link for recipe in recipes((LINKS,), 3, 8)}
    assert not others & {recipe.link for recipe in few}


def test_no_two_runs_have_the_same_name() -> None:
    assert max(Counter(recipe.name for recipe in ALL).values()) == 1


def test_a_part_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="not a part"):
        recipes(("passiv",), 1, 1)


def test_links_are_within_their_limits() -> None:
    for wan in draw_links(300, 1):
        assert RATE_MBPS[0] <= wan.rate_bps / 1e6 <= RATE_MBPS[1]
        assert RTT_MS[0] <= wan.rtt_s * 1e3 <= RTT_MS[1]
        assert QUEUE_BDP[0] <= wan.queue_bdp <= QUEUE_BDP[1]


def test_near_links_are_within_their_limits_and_are_others() -> None:
    near, far = draw_links(300, 1, near=True), draw_links(300, 1)
    for wan in near:
        assert RATE_MBPS[0] <= wan.rate_bps / 1e6 <= RATE_MBPS[1]
        assert NEAR_RTT_MS[0] <= wan.rtt_s * 1e3 <= NEAR_RTT_MS[1]
        queue_ms = wan.queue_bytes * 8e3 / wan.rate_bps
        assert 0.99 * NEAR_QUEUE_MS[0] <= queue_ms <= 1.01 * NEAR_QUEUE_MS[1]
    assert not {wan.id for wan in near} & {wan.id for wan in far}
    assert not {recipe.name for recipe in recipes((LINKS, DIPS), 3, 1)} & {
        recipe.name for recipe in recipes((LINKS, DIPS), 3, 1, near=True)
    }


def test_how_long_cubic_takes_by_hand() -> None:
    """63 Mbit/s and 45 ms are 236 packets, twice that with the queue: K = cbrt(472 * 0.3 / 0.4) s."""
    assert Wan("x", 63_000_000, 0.045, 1.0).cycle_s == pytest.approx(7.08, abs=0.01)
    long = Wan("x", 200_000_000, 0.2, 4.0)
    assert long.settles_s == pytest.approx(2.5 * long.cycle_s) and long.settles_s > 55


def test_every_class_is_there_on_every_link() -> None:
    for part in (LINKS, DIPS):
        some = recipes((part,), 30, 1)
        found = Counter((recipe.link.id, recipe.mix) for recipe in some)
        for wan in draw_links(30, 1):
            assert all(found[wan.id, mix] == 1 for mix in MIXES)
            assert sum(recipe.link == wan and recipe.mix not in MIXES for recipe in some) == OUTSIDE_KINDS


def test_every_run_on_a_link_has_series_of_every_kind() -> None:
    for recipe in recipes((LINKS,), 30, 1):
        parts = Counter(each.part for each in recipe.stretches)
        assert parts == {"passive": 2, "active": 1, "transfer": 2}
        assert [bool(each.nuisance) for each in recipe.stretches if each.part == "passive"] == [False, True]


def test_every_link_has_copies_that_make_dips_with_each_congestion_control() -> None:
    some = recipes((DIPS,), 30, 1)
    for recipe in some:
        assert recipe.name.endswith("-dips")
        owns = [each.own for each in recipe.stretches]
        assert {own.congestion for own in owns if own} == set(OWN_CONGESTIONS)
        assert all(own and own.dips and parse(own.spec).dips == 1 for own in owns)
    assert {own.streams for recipe in some for each in recipe.stretches if (own := each.own)} == {
        *OWN_STREAMS
    }


def test_passive_series_alone_are_those_of_a_whole_run_on_other_links() -> None:
    some = recipes((PASSIVE,), 5, 2)
    assert {recipe.link for recipe in some} == set(draw_links(5, 2))
    assert len(some) == 5 * (len(MIXES) + OUTSIDE_KINDS)
    for recipe in some:
        assert recipe.name.endswith("-passive")
        assert [(each.part, bool(each.nuisance)) for each in recipe.stretches] == [
            (PASSIVE, False),
            (PASSIVE, True),
        ]
    assert not {recipe.name for recipe in some} & {recipe.name for recipe in recipes(PARTS, 5, 2)}


def test_each_class_is_seen_clean_and_disturbed_in_every_way() -> None:
    found = {(r.mix, each.part, each.profile, bool(each.nuisance)) for r in ALL for each in r.stretches}
    ways = [("passive", ""), ("active", "short"), ("transfer", ""), ("dips", "")]
    assert {(mix, *way, bad) for mix in MIXES for way in ways for bad in (False, True)} <= found
    assert {mix for mix, _, profile, _ in found if profile == "paper"} >= set(MIXES)


def test_every_generator_is_one_that_the_lab_has() -> None:
    for recipe in ALL:
        for each in generators(recipe):
            parse(each.spec)


def test_short_flows_beside_a_mix_are_short() -> None:
    for recipe in ALL:
        for spec in (parse(text) for each in recipe.stretches for text in each.nuisance):
            if isinstance(spec, ShortFlows):
                assert spec.largest * 8 / recipe.link.rate_bps <= 0.3 + 1e-6


def test_traffic_outside_of_the_mixes_makes_queues_stand() -> None:
    for wan in draw_links(50, 3):
        for mix, streams in outside(wan).items():
            for spec in map(parse, streams):
                if isinstance(spec, Udp | UdpBursty):
                    assert spec.rate >= wan.rate_bps
                elif isinstance(spec, TcpSquare):
                    assert spec.on >= 1 + 20 * wan.rtt_s - 0.01
                elif isinstance(spec, Tcp) and mix.startswith("many"):
                    assert sum(parse(text).streams for text in streams) >= 8


def test_the_papers_cell_is_an_hour_of_each_class_with_each_kind_of_probing() -> None:
    for profile in ("", "paper"):
        hours = Counter[str]()
        for recipe in recipes((PAPER_CELL,), 1, 1):
            hours[recipe.mix] += sum(each.seconds for each in recipe.stretches if each.profile == profile)
        assert set(hours.values()) == {PAPER_PIECES * PAPER_PIECE_S} and set(hours) == set(MIXES)


def test_series_begin_when_the_mix_has_settled() -> None:
    for recipe in ALL:
        for begin_s in recipe.begins_s:
            assert recipe.arrives_s <= begin_s <= recipe.arrives_s + STAGGER_S
            assert recipe.series[0].from_s - begin_s >= recipe.link.settles_s - 0.001
        assert recipe.ends_s > recipe.series[-1].until_s and min(recipe.begins_s, default=LEAD_S) >= LEAD_S


def test_nothing_of_one_series_is_there_in_another() -> None:
    for recipe in ALL:
        ends_s = 0.0
        for series in recipe.series:
            assert ends_s + BETWEEN_S <= series.begins_s <= series.from_s < series.until_s
            ends_s = series.until_s
        for each in generators(recipe):
            if not each.name.startswith("mix"):
                series = recipe.series[int(each.name.split("-")[1].rstrip("ab")) - 1]
                assert series.begins_s <= each.from_s and each.until_s == series.until_s


def test_the_mix_has_time_to_come_back() -> None:
    for recipe in ALL:
        for before, after in pairwise(recipe.series):
            if recipe.streams and before.stretch.takes_the_link:
                assert after.begins_s - before.until_s > recipe.link.cycle_s + 5


def test_bursts_begin_with_their_series() -> None:
    for recipe in ALL:
        for number, series in enumerate(recipe.series, 1):
            bursts = [each for each in generators(recipe) if each.name.startswith(f"burst-{number}")]
            assert len(bursts) == 2 * bool(series.stretch.profile)
            assert all(each.from_s == series.from_s for each in bursts)


@pytest.mark.parametrize(
    ("profile", "begins_s"),
    [("paper", [(0, 10, 20), (5, 25, 45)]), ("short", [(0, 5, 10), (2, 7, 12)])],
)
def test_bursts_take_turns(profile: str, begins_s: list[tuple[float, ...]]) -> None:
    for text, expected in zip(Stretch("active", 10.0, profile=profile).bursts, begins_s, strict=True):
        spec = parse(text)
        assert isinstance(spec, TcpSquare)
        pattern = phases(spec.on, spec.on + spec.off, spec.after)
        assert tuple(next(pattern).on_s for _ in expected) == expected


class TestOurOwnCopies:
    SOME = [recipe for recipe in ALL if recipe.link.id != "paper"]

    @staticmethod
    def of(recipe: Recipe) -> list[Series]:
        return [series for series in recipe.series if series.stretch.own]

    def test_each_mix_meets_each_stream_count_each_control_first_and_both_orders_of_arrival(self) -> None:
        found: dict[str, set[object]] = defaultdict(set)
        for recipe in self.SOME:
            if recipe.mix in MIXES:
                own = [series.stretch.own for series in self.of(recipe) if series.stretch.own]
                found[recipe.mix] |= {("streams", each.streams) for each in own}
                found[recipe.mix] |= {tuple(each.congestion for each in own), recipe.ours_first}
        orders = {OWN_CONGESTIONS, OWN_CONGESTIONS[::-1]}
        assert set(found) == set(MIXES)
        for seen in found.values():
            assert seen == {("streams", count) for count in OWN_STREAMS} | orders | {True, False}

    def test_each_has_settled_when_its_series_begins(self) -> None:
        for recipe in self.SOME:
            for series in self.of(recipe):
                assert series.from_s >= series.begins_s + 3 + 10 * recipe.link.rtt_s - 1e-6

    def test_who_is_first(self) -> None:
        for recipe in self.SOME:
            first = self.of(recipe)[0]
            if recipe.ours_first:
                assert first is recipe.series[0] and first.begins_s == LEAD_S < recipe.arrives_s - 7
            else:
                assert first.begins_s > max(recipe.begins_s, default=LEAD_S)

    def test_how_old_our_copy_is_does_not_tell_the_mix(self) -> None:
        ages: dict[tuple[Wan, bool], set[float]] = defaultdict(set)
        for recipe in self.SOME:
            for number, series in enumerate(self.of(recipe)):
                there = recipe.ours_first and number == 0
                ages[recipe.link, there].add(round(series.from_s - series.begins_s, 6))
        assert all(len(seen) == 1 for seen in ages.values())

    def test_what_is_known_of_ours_is_told_with_each_series(self) -> None:
        for recipe in self.SOME:
            for series, told in zip(recipe.series, recipe.described()["series"], strict=True):
                own = series.stretch.own
                known = (own.congestion, own.streams) if own else ("", 0)
                assert (told["own_congestion"], told["own_streams"]) == known


def test_how_long_it_takes_at_least() -> None:
    slow, fast = (
        Recipe(Wan("x", rate, 0.01, 1.0), "none", (), (Stretch("passive", 40.0),))
        for rate in (20_000_000, CAPACITY_BPS)
    )
    each_s = slow.ends_s + OVERHEAD_S
    assert wall_s([slow] * 12, 6) == pytest.approx(2 * each_s)
    assert wall_s([fast] * 12, 6) == pytest.approx(12 * each_s)


def test_runs_are_mixed_over_links_and_what_comes_first_is_of_use() -> None:
    some = recipes((LINKS,), 20, 1)
    assert len({recipe.link for recipe in some[:6]}) > 2
    first = some[: len(some) // 4]
    assert len({recipe.link for recipe in first}) == 5 and {recipe.mix for recipe in first} >= set(MIXES)
