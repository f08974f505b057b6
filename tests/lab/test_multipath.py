"""`mpx copy --controller`: real copies over four paths of real switches, and what becomes of them without."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from install_peers import find_peer
from mpx_command import command
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.own_controller import OWN
from mpx_lab.stock_server import stock_server
from random_bytes import random_bytes
from traces import traces

Make = Callable[..., Lab]
Eventually = Callable[..., None]
BETWEEN = ("s1-s2", "s1-s3", "s1-s4", "s1-s5")
SCALE = 0.1  # 10 Mbit/s on each of the four paths
SIZE = 12_000_000
ENOUGH = SIZE / 50  # that a path carries it, however late its streams open on a busy machine
LONG = 120
SCHEMA = json.loads(files("mpx").joinpath("report.schema.json").read_text())


def ours(lab: Lab, folder: Path) -> contextlib.AbstractContextManager[str]:
    """mpx serve on dst; its URL."""
    return mpx_server(lab.host("dst"), folder)


@contextlib.contextmanager
def stock(lab: Lab, folder: Path) -> Iterator[str]:
    find_peer("globus-gridftp-server")
    with stock_server(lab.host("dst"), folder) as url:
        yield f"{url}{folder}"


def url_of(served: str, name: str) -> str:
    return f"{served.rstrip('/')}/{name}"


class Copying:
    """A copy on src."""

    def __init__(self, lab: Lab, folder: Path, *words: object) -> None:
        self.report_file = folder / "report.json"
        environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
        told = command("copy", "--report", self.report_file, *words)
        self.process = lab.host("src").popen(told, env=environment, stderr=subprocess.PIPE)

    def ended(self) -> dict[str, Any]:
        _, err = self.process.communicate(timeout=LONG)
        assert b"Traceback" not in err, err
        report: dict[str, Any] = json.loads(self.report_file.read_text())
        jsonschema.validate(report, SCHEMA)
        return report


def carried(lab: Lab, *, up: bool) -> list[int]:
    """Return the bytes that each of the four paths has carried, up or down."""
    stats = [lab.link(name).stats() for name in BETWEEN]
    return [(each.a_to_b if up else each.b_to_a).delivered.bytes for each in stats]


@pytest.fixture
def lab(make_lab: Make) -> Lab:
    return make_lab("thesis-a", scale=SCALE, controller=OWN)


def folders(tmp_path: Path) -> tuple[Path, Path, bytes]:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir(mode=0o777)
    far.chmod(0o777)
    for each in (tmp_path, *tmp_path.parents):  # the stock server works as another user
        with contextlib.suppress(PermissionError):
            each.chmod(each.stat().st_mode | 0o055)
    return near, far, random_bytes(SIZE)


@pytest.mark.parametrize("server", [ours, stock])
def test_all_paths_carry_a_copy(lab: Lab, tmp_path: Path, server: Callable[..., Any]) -> None:
    near, far, content = folders(tmp_path)
    for name in (near / "up", far / "down"):
        name.write_bytes(content)
        name.chmod(0o644)
    with server(lab, far) as served:
        for names, target, up in (
            ((near / "up", url_of(served, "b")), far / "b", True),
            ((url_of(served, "down"), near / "b"), near / "b", False),
        ):
            before = carried(lab, up=up)
            report = Copying(lab, tmp_path, "--controller", OWN.rest, *names).ended()
            assert report["status"] == "done", report["error"]
            assert target.read_bytes() == content
            moved = [now - was for was, now in zip(before, carried(lab, up=up), strict=True)]
            assert min(moved) > ENOUGH, (up, moved)
            paths = report["decisions"]["paths"]
            assert [path["path"] for path in paths] == ["0", "1", "2", "3"]
            assert min(path["carried_bytes"] for path in paths) > ENOUGH
            assert {event["path"] for event in report["timeline"]} == {"0", "1", "2", "3"}
            assert sets_of(lab) == []  # it has given back its own


def sets_of(lab: Lab) -> Any:
    """Return the path sets that src has."""
    ask = f"import urllib.request as u; print(u.urlopen('{OWN.rest}/path-sets').read().decode())"
    told = lab.host("src").run(["python3", "-c", ask], stdout=subprocess.PIPE, timeout=30)
    return json.loads(told.stdout)


@pytest.mark.parametrize("upload", [True, False], ids=["up", "down"])
@pytest.mark.parametrize("silent", [True, False], ids=["loses everything", "carrier"])
def test_a_path_that_is_cut_in_the_middle_costs_no_byte_and_no_session(
    lab: Lab, tmp_path: Path, eventually: Eventually, upload: bool, silent: bool
) -> None:
    near, far, content = folders(tmp_path)
    source, target = (near / "a", far / "b") if upload else (far / "a", near / "b")
    source.write_bytes(content)
    link = lab.link(BETWEEN[2])
    with ours(lab, far) as served:
        names = (source, url_of(served, "b")) if upload else (url_of(served, "a"), target)
        before = carried(lab, up=upload)[2]
        copying = Copying(lab, tmp_path, "--controller", OWN.rest, *names)
        eventually(lambda: carried(lab, up=upload)[2] - before > SIZE / 20)
        if silent:
            link.change(loss=1.0)
        else:
            link.set_up(False)
        report = copying.ended()
    assert report["status"] == "done", report["error"]
    assert target.read_bytes() == content
    if upload:  # a download may fetch what is late over the others, and begin the session of that path anew
        assert not [note for note in report["notes"] if "trying again" in note], report["notes"]
    if silent:
        lost = (
            event["path"] for event in report["timeline"] if "; its streams moved to other" in event["reason"]
        )
        assert "2" in lost


def test_streams_leave_a_path_that_loses_everything_and_take_it_again_when_it_answers(
    lab: Lab, tmp_path: Path, eventually: Eventually
) -> None:
    near, far, content = folders(tmp_path)
    content *= 2
    (near / "a").write_bytes(content)
    link = lab.link(BETWEEN[2])

    def on_it() -> set[str]:
        (known,) = sets_of(lab)
        return {port for port, path in known["ports"].items() if path == 2}

    with ours(lab, far) as served:
        words = ("--controller", OWN.rest, near / "a", url_of(served, "b"))
        # It would last eight minutes, if let.
        copying = Copying(lab, tmp_path, "--rate", "400kbit/s", "--streams", "8", *words)
        eventually(lambda: carried(lab, up=True)[2] > 50_000 and len(on_it()) > 1)
        were_on_it = on_it()
        link.change(loss=1.0)
        # Sessions that ask over it stay until they are lost themselves; its two streams do not.
        eventually(lambda: len(were_on_it - on_it()) > 1)
        link.change(loss=0.0)
        before = carried(lab, up=True)[2]
        eventually(lambda: len(on_it()) > 1 and carried(lab, up=True)[2] - before > 50_000)
        copying.process.send_signal(signal.SIGTERM)
        report = copying.ended()
        whole = Copying(lab, tmp_path, *words).ended()
    assert report["status"] == "interrupted", report["error"]
    assert whole["status"] == "done", whole["error"]
    assert (far / "b").read_bytes() == content
    reasons = [event["reason"] for event in report["timeline"] if event["path"] == "2"]
    assert any("; its streams moved to other" in reason for reason in reasons)
    assert any("its streams moved back" in reason for reason in reasons)


def test_without_a_controller_there_is_one_path_unless_it_is_required(lab: Lab, tmp_path: Path) -> None:
    near, far, content = folders(tmp_path)
    (near / "a").write_bytes(content[:1_000_000])
    nobody = ("--controller", "http://10.254.0.254:1")
    with ours(lab, far) as served:
        report = Copying(lab, tmp_path, *nobody, near / "a", url_of(served, "b")).ended()
        assert report["status"] == "done" and (far / "b").read_bytes() == content[:1_000_000]
        assert any("one path is used: request to the controller at" in note for note in report["notes"])
        required = Copying(lab, tmp_path, *nobody, "--require-controller", near / "a", url_of(served, "c"))
        assert required.ended()["exit_code"] == 11
        assert required.process.returncode == 11
        assert not (far / "c").exists()


def test_a_controller_that_is_killed_costs_nothing_but_the_line(
    lab: Lab, tmp_path: Path, eventually: Eventually
) -> None:
    near, far, content = folders(tmp_path)
    (near / "a").write_bytes(content)
    with ours(lab, far) as served:
        before = carried(lab, up=True)

        def all_move() -> bool:
            return min(now - was for was, now in zip(before, carried(lab, up=True), strict=True)) > 100_000

        copying = Copying(lab, tmp_path, "--controller", OWN.rest, near / "a", url_of(served, "b"))
        eventually(all_move)
        (line,) = [line for line in traces(lab.id) if "--insecure" in line and "controller" in line]
        os.kill(int(line.split()[1].rstrip(":")), signal.SIGKILL)
        report = copying.ended()
    assert report["status"] == "done" and (far / "b").read_bytes() == content
