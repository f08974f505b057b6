"""What the benches of whole commands have in common: goodput, medians, the table."""

import pytest
from wan_runs import DOWN, UP, WanRow, WanRun, medians


class OfTwoTools(WanRow):
    name, folder = "two", "reports/two"
    cases, tools = {"clean": None}, ("ours", "theirs")

    def results(self, options: object) -> list[WanRun]:
        raise NotImplementedError


RUNS = [
    *(WanRun("clean", DOWN, "ours", seed, 1_000_000, took_s) for seed, took_s in enumerate([4.0, 1.0, 2.0])),
    WanRun("clean", DOWN, "theirs", 0, 1_000_000, 8.0),
    WanRun("clean", UP, "theirs", 0, 2_000_000, 8.0),
]


def test_medians_of_what_is_stored() -> None:
    found = medians(OfTwoTools().measured(RUNS))
    assert found == {
        ("clean", DOWN): {"ours": pytest.approx(4e6), "theirs": pytest.approx(1e6)},
        ("clean", UP): {"theirs": pytest.approx(2e6)},
    }


def test_the_table() -> None:
    assert OfTwoTools().table(RUNS) == [
        "| path | way | MB | ours | theirs |",
        "|---|---|---|---|---|",
        "| clean | down | 1 | 4.0 (2.0 to 8.0) | 1.0 (1.0 to 1.0) |",
        "| clean | up | 2 |  | 2.0 (2.0 to 2.0) |",
    ]
