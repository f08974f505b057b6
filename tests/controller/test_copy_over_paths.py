"""What a copy does with its paths (`Multipath`): measures them, tells what they carried, gives them back."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from graphs import THESIS_A, capacities
from pretended import PATHS, Book, kept
from running_controller import controller
from steering import DST, SRC
from wans import ENDS
from wire_switches import wire_wan

from mpx import sdn_client
from mpx.engine.endpoint import Rtt
from mpx.engine.tuner import Sample
from mpx.multipath import steering as steered_paths
from mpx.multipath.paths_in_use import MEASURED_S, Multipath
from mpx.multipath.server_address import ServerAddress
from mpx.multipath.steering import SteeredPaths
from mpx.report import no_note
from mpx.sdn_client import ControllerClient

RTT_S = 0.1
Eventually = Callable[..., None]


def test_a_lease_of_nothing_is_not_renewed_without_a_pause(eventually: Eventually) -> None:
    book = Book()
    with kept(book) as url:
        client = ControllerClient(url)
        known = replace(client.assign(SRC, DST, PATHS), lease_s=0.0)
        paths = SteeredPaths(client, known, far=there(), note=no_note, changed=lambda _: None)
        paths.start()
        before = paths._renew_at_s
        eventually(lambda: book.renewed > 0)
        eventually(lambda: paths._renew_at_s > before)
        assert paths._renew_at_s - before >= steered_paths.WATCHED_S
        paths.close()


def there() -> ServerAddress:
    return ServerAddress(DST, required=False, note=no_note)


def copying(client: ControllerClient) -> Multipath:
    """Return the paths of a copy whose far end answers at once, with probes under way."""
    far: Any = SimpleNamespace(
        measure_rtt=lambda: Rtt(RTT_S, None, None, None), pause=lambda: None, close=lambda: None
    )
    known = client.assign(SRC, DST, PATHS)
    multipath = Multipath(client, known, near="source", far=there(), open_session=lambda _: far, note=no_note)
    may_probe = threading.Event()
    may_probe.set()
    multipath.start(may_probe)
    return multipath


def measured(multipath: Multipath) -> bool:
    return all(multipath.rtt(name) for name in multipath.known.names)


def test_a_copy_tells_what_each_path_has_carried(tmp_path: Path, eventually: Eventually) -> None:
    """So that the next begins with as many streams."""
    (tmp_path / "capacities.json").write_text(capacities(THESIS_A))
    with (
        controller(tmp_path / "state.json") as running,
        wire_wan(running.port, THESIS_A, ENDS),
    ):
        eventually(lambda: running.get("topology")["edges"] == ["1:1000", "6:1000"])
        client = ControllerClient(running.urls["rest"])
        untaught = client.assign(SRC, DST, 1)
        client.release(untaught.number)
        for _ in range(20):
            multipath = copying(client)
            names = multipath.known.names
            eventually(partial(measured, multipath))
            for now_s in range(12):
                carried = {name: Sample(40, int(now_s * 1e8 / 8), 1 << 40) for name in names}
                multipath.carried(now_s + MEASURED_S, carried)
            multipath.close()
            eventually(lambda: not running.get("path-sets"))  # on a busy host it ends after close
        assert client.assign(SRC, DST, 1).paths[0].streams > untaught.paths[0].streams


@pytest.mark.parametrize("strays", [False, True])
def test_of_data_that_goes_elsewhere_nobody_says_over_which_path(
    eventually: Eventually, strays: bool
) -> None:
    book = Book()
    with kept(book) as url:
        multipath = copying(ControllerClient(url))
        names = multipath.known.names
        eventually(partial(measured, multipath))
        before = list(multipath.described)
        for now_s in range(12):
            sample = Sample(2, int(now_s * 1e8 / 8), 1 << 40)
            multipath.carried(now_s + MEASURED_S, dict.fromkeys(names, sample))
            if strays and now_s == 10:
                assert not multipath.paths.lead_to("192.0.2.1")
        assert multipath.paths.lead_to(DST) and multipath.paths.lead_to(f"::ffff:{DST}")
        assert [("carried_bytes" in each) for each in multipath.described] == [not strays] * PATHS
        assert [each["carried_bytes"] for each in before] == [0] * PATHS  # which a report may be writing now
        multipath.close()
        eventually(lambda: book.sets == {})
        assert book.feedback == (0 if strays else PATHS)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_controller_that_hangs_does_not_keep_a_copy_from_ending(
    monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(sdn_client, "ANSWER_S", 1000.0)
    book = Book()
    with kept(book) as url:
        multipath = copying(ControllerClient(url))
        book.answers.clear()
        stream = threading.Thread(target=multipath.paths.register("1", "source"), args=(40_001,))
        if stopped:
            stream.start()
            multipath.stop()
            stream.join(60)
            assert not stream.is_alive()
        ending = threading.Thread(target=multipath.close)
        ending.start()
        ending.join(60)
        assert not ending.is_alive()
        book.answers.set()


def test_what_is_stopped_gives_its_set_back(eventually: Eventually) -> None:
    book = Book()
    with kept(book) as url:
        multipath = copying(ControllerClient(url))
        multipath.stop()
        multipath.close()
        eventually(lambda: book.sets == {})


def test_a_lost_path_that_nobody_can_ask_over_is_tried_again(eventually: Eventually) -> None:
    """The server lets no further session in: its probe has given up."""
    book = Book()
    with kept(book) as url:
        client = ControllerClient(url)
        known = client.assign(SRC, DST, PATHS)
        multipath = Multipath(client, known, near="source", far=there(), open_session=refused, note=no_note)
        multipath.start(threading.Event())
        for probe in multipath._probes.values():
            probe.end()  # as one that has given up
            eventually(lambda of=probe: not of.is_alive())

        def silent_s(path: str) -> float:
            return 10.0 if path == "1" else 0.0

        multipath.observe(1000.0, silent_s)
        assert multipath.lost == {"1"}
        (change,) = multipath.observe(1010.0, lambda _: 0.0)
        assert change.path == "1" and not multipath.lost
        multipath.close()


def refused(_: Callable[[int], None]) -> Any:
    raise AssertionError("no session is opened")
