"""Routes of a lab's hosts: congestion control and windows for programs that ask for none."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pytest
from mpx_lab.lab import Lab
from mpx_lab.route_list import Route
from mpx_lab.state import LabError
from pairs import PAIRS
from sockets import congestion, connection
from traces import traces

from mpx.errors import UsageError

Make = Callable[..., Lab]


def test_routes_give_congestion_control_and_window_to_programs_that_ask_for_none(make_lab: Make) -> None:
    lab = make_lab(PAIRS)
    with connection(lab, "src1", "dst1") as (near, _):
        assert congestion(near) == "cubic"
    lab.host("src1").set_route(congestion="reno")
    lab.host("src1").set_route(to="dst2", congestion="bbr", window_bytes=65535)
    for sink, name in (("dst1", "reno"), ("dst2", "bbr")):
        for address in lab.host(sink).addresses:
            with connection(lab, "src1", sink, address) as (near, _):
                assert congestion(near) == name
    ask = ["ip", "-6", "route", "get", "fd00::4"]
    assert "window 65535" in lab.host("src1").run(ask, capture_output=True, text=True).stdout
    lab.host("src1").set_route(congestion="cubic")  # for all is for that one, too
    for address in lab.host("dst2").addresses:
        with connection(lab, "src1", "dst2", address) as (near, _):
            assert congestion(near) == "cubic"
    assert "window" not in lab.host("src1").run(ask, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"congestion": "no\nsuch"}, "not the name of a congestion control"),
        ({"window_bytes": 4095}, "4096 bytes"),
        ({"to": "dst", "window_bytes": 100_000}, "cannot be for one host only"),
        ({"to": "nobody"}, "no host 'nobody'"),
        ({"to": "src"}, "share no network"),
    ],
)
def test_a_route_that_cannot_be_is_refused(make_lab: Make, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_lab("path").host("src").set_route(**options)  # type: ignore[arg-type]


def test_where_the_kernel_has_no_such_congestion_control_those_that_it_has_are_named(make_lab: Make) -> None:
    lab = make_lab("path")
    with pytest.raises(UsageError, match=r"'nosuch', it has .*cubic"):
        lab.host("src").set_route(congestion="nosuch")
    assert lab.routes() == []


def test_a_window_for_all_is_none_for_one(make_lab: Make) -> None:
    """Its buffers hold for all connections, and would go on doing so."""
    lab = make_lab("path")
    sink = lab.host("dst")
    sink.set_route(window_bytes=20_000)
    with pytest.raises(UsageError, match="window of 20000 bytes for all"):
        sink.set_route(to="src", congestion="bbr")
    sink.set_route(window_bytes=65535)
    sink.set_route(to="src", congestion="bbr")


def test_routes_that_are_set_at_once_are_all_set_and_told(make_lab: Make) -> None:
    lab = make_lab(PAIRS)
    names = ("reno", "bbr") * 8
    with ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(lab.host("src1").set_route, to, name) for name in names for to in ("dst1", "dst2")
        ]
    assert [each.exception() for each in done] == [None] * len(done)
    told = {route.to: route.congestion for route in lab.routes()}
    for to in ("dst1", "dst2"):
        with connection(lab, "src1", to) as (near, _):
            assert congestion(near) == told[to]


def test_a_lab_that_is_gone_has_no_routes_to_set(make_lab: Make) -> None:
    lab = make_lab("path")
    host = lab.host("src")
    lab.down()
    with pytest.raises(LabError, match="taken down meanwhile"):
        host.set_route(congestion="bbr")
    assert traces(lab.id) == []


def test_what_was_set_is_told_until_it_is_the_default_again(make_lab: Make) -> None:
    lab = make_lab(PAIRS)
    one, other = lab.host("src1"), lab.host("dst1")
    one.set_route(congestion="bbr")
    one.set_route(to="dst1")
    one.set_route(to="dst1", congestion="reno")
    other.set_route(window_bytes=65535)
    to_one, to_all = Route("src1", "dst1", "reno"), Route("src1", None, "bbr")
    assert Lab.attach(lab.id).routes() == [to_all, to_one, Route("dst1", None, "cubic", 65535)]
    assert lab.status()["routes"][1] == asdict(to_one)
    one.set_route(congestion="reno")
    other.set_route()
    assert lab.routes() == [Route("src1", None, "reno")]
