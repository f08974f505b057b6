"""Every combination of tuner, policy, congestion control, controller, direction and server copies all bytes.

What one of them cannot have is a line in the report.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mpx_lab.lab import Lab
from mpx_lab.own_controller import OWN
from test_multipath import BETWEEN, SCALE, Copying, folders, ours, stock, url_of

VALUES: Mapping[str, tuple[str, ...]] = {
    "tuner": ("auto", "paper"),
    "policy": ("fair", "fast", "scavenger"),
    "congestion": ("auto", "kernel", "reno"),
    "controller": ("no", "yes"),
    "direction": ("up", "down"),
    "server": ("mpx serve", "stock"),
}
SERVERS: Mapping[str, Callable[..., Any]] = {"mpx serve": ours, "stock": stock}
MOVED = 3_000_000
Combination = dict[str, str]
Pair = frozenset[tuple[str, str]]


def every() -> Iterator[Combination]:
    for values in itertools.product(*VALUES.values()):
        yield dict(zip(VALUES, values, strict=True))


def pairs_of(combination: Combination) -> set[Pair]:
    return {frozenset(pair) for pair in itertools.combinations(combination.items(), 2)}


def of_all_pairs() -> list[Combination]:
    """Return few combinations that have each pair of values: always the one with most new pairs."""
    left, found = set[Pair]().union(*map(pairs_of, every())), []
    while left:
        found.append(max(every(), key=lambda each: len(pairs_of(each) & left)))
        left -= pairs_of(found[-1])
    return found


def words(combination: Combination) -> list[str]:
    options = [f"--{name}={combination[name]}" for name in ("tuner", "policy", "congestion")]
    options += ["--chunk-time=300ms"] * (combination["tuner"] == "paper")
    return options + [f"--controller={OWN.rest}"] * (combination["controller"] == "yes")


def copied(lab: Lab, folder: Path, served: str, combination: Combination) -> dict[str, Any]:
    """Copy a file as the combination says; return the report."""
    near, far, content = folders(folder)
    content = content[:MOVED]
    up = combination["direction"] == "up"
    source, target = (near / "a", far / "b") if up else (far / "a", near / "b")
    source.write_bytes(content)
    source.chmod(0o644)
    far_url = url_of(served, f"{folder.name}/far")
    names = (source, url_of(far_url, "b")) if up else (url_of(far_url, "a"), target)
    report = Copying(lab, folder, *words(combination), *names).ended()
    assert report["status"] == "done", report["error"]
    assert target.read_bytes() == content
    return report


def check(combination: Combination, report: Mapping[str, Any]) -> None:
    """Raise AssertionError where the report does not say what became of each option."""
    notes, timeline = " ".join(report["notes"]), report["timeline"]
    paths = {"0", "1", "2", "3"} if combination["controller"] == "yes" else {"default"}
    assert {event["path"] for event in timeline} == paths
    tells = combination["direction"] == "up" or combination["server"] == "mpx serve"
    if combination["congestion"] == "reno":
        told = {event["congestion"] for event in timeline}
        assert (told == {"reno"}) == tells, told
        assert ("--congestion reno is not available" in notes) != tells
    searches = combination["policy"] != "scavenger"
    assert ("does not search" in notes) != searches
    by_paper = any("eq. (1)" in event["reason"] for event in timeline)
    assert by_paper == (searches and combination["tuner"] == "paper")


def run(lab: Lab, folder: Path, combinations: list[Combination]) -> None:
    folder.chmod(0o755)
    for server, serve in SERVERS.items():
        with serve(lab, folder) as served:
            for number, combination in enumerate(combinations):
                if combination["server"] != server:
                    continue
                place = folder / str(number)
                place.mkdir()
                report = copied(lab, place, served, combination)
                try:
                    check(combination, report)
                except AssertionError as error:
                    raise AssertionError(f"{combination}: {error}") from error


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    assert len(BETWEEN) == 4
    return make_lab("thesis-a", scale=SCALE, controller=OWN)


def test_each_pair_of_values(lab: Lab, tmp_path: Path) -> None:
    run(lab, tmp_path, of_all_pairs())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_whole_table(lab: Lab, tmp_path: Path) -> None:
    run(lab, tmp_path, list(every()))
