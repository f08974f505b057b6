"""The connections that gfal2 opens get the congestion control that is asked for, from inside its process."""

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gfal.slow_path import SlowPath
from install_peers import find_peer
from sites import Site, make

import mpx as api
from mpx.net.congestion_control import usable_congestion

Via = Callable[..., api.Report]
Open = Callable[[str], contextlib.AbstractContextManager[Site]]


def used_towards(port: int) -> set[str]:
    """The congestion controls of connections to a port of this host."""
    find_peer("ip")  # of the same package
    told = subprocess.run(
        ["ss", "-tinHO", "dport", "=", f":{port}"], capture_output=True, text=True, check=True
    ).stdout
    return {name for name in usable_congestion() for line in told.splitlines() if f" {name} " in line}


@pytest.mark.parametrize("name", ["reno", "bbr"])
def test_an_upload_by_name(here: Path, open_server: Open, via: Via, name: str) -> None:
    if name not in usable_congestion():
        pytest.skip(f"this kernel gives its users no {name}")
    seen: set[str] = set()
    content = make(here / "file", 6_000_001).read_bytes()
    with open_server("apache") as site:
        port = int(site.url.split(":")[2].split("/")[0])
        with SlowPath(port, 64e6) as path:

            def look(_: api.Progress) -> None:
                seen.update(used_towards(path.port))

            url = site.url_of("to").replace(f":{port}", f":{path.port}")
            report = via(here / "file", url, congestion=name, more={"on_progress": look})
        assert (site.folder / "to").read_bytes() == content
    assert name in seen
    assert report.decisions["congestion"] == name


def test_one_that_this_kernel_has_not(here: Path, open_server: Open, via: Via) -> None:
    make(here / "file", 1)
    with open_server("apache") as site, pytest.raises(api.MpxError, match="nonesuch") as caught:
        via(here / "file", site.url_of("to"), congestion="nonesuch")
    assert caught.value.exit_code == 2


def test_who_sends_is_not_us(here: Path, open_server: Open, via: Via) -> None:
    with open_server("apache") as site:
        site.write("file", os.urandom(1001))
        report = via(site.url_of("file"), here / "to", congestion="reno")
    assert any(note.startswith("--congestion reno is not available") for note in report.notes)
