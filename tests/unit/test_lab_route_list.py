"""What was set for the connections of a host, and what of it still holds."""

from pathlib import Path

from mpx_lab.route_list import Route, routes_of, save_routes, with_route

ALL, ONE, OTHER = Route("a", None, "bbr"), Route("a", "b", "reno"), Route("a", "c", "cubic", 65535)


def test_one_towards_all_takes_the_place_of_every_other() -> None:
    assert with_route([ALL, ONE, OTHER], Route("a", None, "reno")) == [Route("a", None, "reno")]
    assert with_route([ALL, ONE], Route("a")) == []


def test_one_towards_a_host_takes_the_place_of_that_only() -> None:
    fresh = Route("a", "b", "cubic", 65535)
    assert with_route([ALL, ONE, OTHER], fresh) == [ALL, OTHER, fresh]
    assert with_route([ALL], Route("a", "b")) == [ALL, Route("a", "b")]  # not as towards all


def test_they_are_kept(tmp_path: Path) -> None:
    assert routes_of(tmp_path, "a") == []
    save_routes(tmp_path, "a", [ALL, OTHER])
    assert routes_of(tmp_path, "a") == [ALL, OTHER]
    assert routes_of(tmp_path, "b") == []
    assert [file.name for file in tmp_path.iterdir()] == ["routes.a.json"]
