"""The kernel of simulated machines, as far as it can be had without building one."""

import fcntl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mpx_command import mpx
from mpx_lab.counters import parse_queues
from mpx_lab.emulator.kernel_link import LINK_QUEUES
from mpx_lab.simulator import kernel as simulator
from mpx_lab.simulator.kernel import built_kernel
from mpx_lab.simulator.machine import SimulatorError

from mpx.errors import UsageError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_without_a_source_it_says_which_package_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "SOURCES", tmp_path)
    with pytest.raises(UsageError, match="linux-source"):
        built_kernel(lambda _: None)


def test_a_source_that_is_none_is_told_of_and_nothing_is_kept(tmp_path: Path, cache: Path) -> None:
    source = tmp_path / "linux-source-6.12.tar.xz"
    source.write_text("no archive")
    said: list[str] = []
    with pytest.raises(SimulatorError, match="tar"):
        built_kernel(said.append, source)
    assert str(source) in said[0]
    assert [each.name for each in (cache / "mpx" / "simulator").iterdir()] == ["lock"]


def test_who_builds_it_is_waited_for_and_what_a_killed_one_left_is_removed(
    tmp_path: Path, cache: Path
) -> None:
    source, home = tmp_path / "linux-source-6.12.tar.xz", cache / "mpx" / "simulator"
    source.write_text("no archive")
    (home / "build-of-a-killed-one").mkdir(parents=True)
    said: list[str] = []
    waits = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        waits.set()

    with (home / "lock").open("w") as other, ThreadPoolExecutor() as aside:
        fcntl.flock(other, fcntl.LOCK_EX)
        kernel = aside.submit(built_kernel, say, source)
        assert waits.wait(60)
        assert "waiting" in said[0] and len(said) == 1
        fcntl.flock(other, fcntl.LOCK_UN)
        with pytest.raises(SimulatorError):
            kernel.result()
    assert "building" in said[1]
    assert not list(home.glob("build-*"))


def test_of_several_sources_the_newest_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("6.9", "6.12", "6.1"):
        (tmp_path / f"linux-source-{version}.tar.xz").write_text(version)
    monkeypatch.setattr(simulator, "SOURCES", tmp_path)
    said: list[str] = []
    with pytest.raises(SimulatorError):
        built_kernel(said.append)
    assert "6.12" in said[0]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["no-such-program"], 127, "mpx: cannot run 'no-such-program': command not found"),
        (["./missing"], 127, "mpx: cannot run './missing': No such file or directory"),
        (["/etc/passwd"], 126, "mpx: cannot run '/etc/passwd': Permission denied"),
        (["/etc"], 126, "mpx: cannot run '/etc': Permission denied"),
    ],
)
def test_what_cannot_be_run_is_told_before_a_kernel_is_built(
    words: list[str], code: int, said: str, tmp_path: Path, cache: Path
) -> None:
    ended = mpx("lab", "simulate", "--", *words, folder=tmp_path)
    assert (ended.code, ended.out, ended.err) == (code, "", f"{said}\n")
    assert not cache.exists()


def test_a_place_that_it_cannot_see_is_told_before_a_kernel_is_built(cache: Path) -> None:
    ended = mpx("lab", "simulate", "--", "true", folder=Path("/dev"))
    assert ended.code == 2
    assert "/dev is not visible inside a simulated machine" in ended.err
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_told_before_a_kernel_is_built(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file")
    source = tmp_path / "linux-source-6.12.tar.xz"
    source.write_text("no archive")
    said: list[str] = []
    with pytest.raises(UsageError, match="XDG_CACHE_HOME"):
        built_kernel(said.append, source)
    assert said == []


def test_what_a_link_of_the_kernel_drops_is_not_lost_on_the_host() -> None:
    text = """[{"dev": "eth0", "kind": "netem", "drops": 3}, {"dev": "eth0", "kind": "tbf", "drops": 3},
               {"dev": "eth0", "kind": "pfifo", "drops": 3},
               {"dev": "eth1", "kind": "pfifo_fast", "drops": 2}]"""
    assert parse_queues(text, LINK_QUEUES) == {"eth1 queue pfifo_fast drops": 2}
