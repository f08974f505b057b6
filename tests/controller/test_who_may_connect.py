"""Who may connect as a switch, and take the place of another."""

from collections.abc import Callable
from pathlib import Path

from mpx_command import mpx, refused
from mpx_controller.config import OpenFlow
from mpx_controller.controller import who_may_connect
from mpx_controller.graph import Graph
from mpx_controller.openflow import Allowed
from running_controller import controller
from wire_switches import wire_wan

Eventually = Callable[..., None]
ONE = Graph.of([1], [])
ANYWHERE = ("--listen", "0.0.0.0:0", "--api", "127.0.0.1:0")


def test_beyond_loopback_switches_are_not_heard_without_more_being_said() -> None:
    refused(mpx("controller", *ANYWHERE), 2, "openflow: beyond loopback (0.0.0.0)", "insecure")


def test_a_lab_says_where_its_switches_are(tmp_path: Path, eventually: Eventually) -> None:
    consent = ("--insecure", "--allow-from", "10.0.0.0/8")
    with (
        controller(tmp_path / "state.json", 0, "", *ANYWHERE, *consent) as running,
        wire_wan(running.port, ONE, {}),
    ):
        eventually(lambda: running.get("healthz") == {"switches": 1})
    allowed = who_may_connect(OpenFlow(address="0.0.0.0", insecure=True, allow_from=["10.0.0.0/8"]))
    assert [allowed.at(each) for each in ("10.1.2.3", "127.0.0.1", "::1", "192.0.2.1", "2001:db8::1")] == [
        *(True, True, True, False, False)
    ]
    assert who_may_connect(OpenFlow(switches=[7])) == Allowed(frozenset([7]))
    assert Allowed().at("192.0.2.1") and Allowed().is_one(7) and not Allowed(frozenset([1])).is_one(7)


def test_a_file_and_the_command_line_count_together(tmp_path: Path, eventually: Eventually) -> None:
    """What the file alone may not say, the command line may have consented to."""
    consent = ("--insecure", "--allow-from", "10.0.0.0/8")
    told = '[openflow]\naddress = "0.0.0.0"\n[api]\naddress = "0.0.0.0"\n'
    with controller(tmp_path / "state.json", 0, told, *ANYWHERE, *consent) as running:
        assert running.get("healthz") == {"switches": 0}
    file = tmp_path / "own.toml"
    file.write_text('[openflow]\naddress = "0.0.0.0"\ninsecure = true\n')
    refused(mpx("controller", "--config", file, *consent), 2, "insecure and allow_from need each other")
    file.write_text("openflow = 3\n")
    refused(mpx("controller", "--config", file, *consent), 2, "openflow")


def test_nobody_takes_the_place_of_a_switch_that_answers(tmp_path: Path, eventually: Eventually) -> None:
    with controller(tmp_path / "state.json") as running, wire_wan(running.port, ONE, {}) as first:
        eventually(lambda: running.get("healthz") == {"switches": 1})
        with wire_wan(running.port, ONE, {}) as second:
            eventually(lambda: not second[1].is_connected)
        assert first[1].is_connected and running.get("healthz") == {"switches": 1}


def test_a_switch_that_comes_back_is_taken_where_its_old_connection_is_dead(
    tmp_path: Path, eventually: Eventually
) -> None:
    with controller(tmp_path / "state.json") as running, wire_wan(running.port, ONE, {}) as first:
        eventually(lambda: running.get("healthz") == {"switches": 1})
        first[1].answers_echoes = False
        with wire_wan(running.port, ONE, {}) as second:
            eventually(lambda: not first[1].is_connected)
            assert second[1].is_connected and running.get("healthz") == {"switches": 1}
