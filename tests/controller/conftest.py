"""A controller with switches that connect over sockets."""

import time
from collections.abc import Iterator

import pytest
from graphs import THESIS_A, capacities
from pretended import Book, kept
from running_controller import Running, controller
from wans import ENDS
from wire_switches import WireSwitch, wire_wan

Network = tuple[Running, dict[int, WireSwitch]]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """A controller with the network of six switches, all links found; at its end it has said nothing bad."""
    folder = tmp_path_factory.mktemp("controller")
    # A test may take longer than the usual lease where the machine is busy.
    config = "[api]\nrequests_per_s = 100\n[path_sets]\nsets = 1000\nlease_s = 600"
    (folder / "capacities.json").write_text(capacities(THESIS_A))
    with (
        controller(folder / "state.json", 0, config, "-v", errors=folder / "log") as running,
        wire_wan(running.port, THESIS_A, ENDS) as switches,
    ):
        until_s = time.monotonic() + 30
        while running.get("topology")["edges"] != ["1:1000", "6:1000"]:
            assert time.monotonic() < until_s
            time.sleep(0.05)
        yield running, switches
    assert "Traceback" not in (folder / "log").read_text()


@pytest.fixture
def book() -> Iterator[tuple[Book, str]]:
    """A controller that only keeps books, and its URL."""
    book = Book()
    with kept(book) as url:
        yield book, url
