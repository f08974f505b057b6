"""The emulator is built once for each version of its source, and old builds go."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_lab.emulator import build

from mpx.errors import UsageError


def test_it_is_built_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = build.built_link()
    assert program.parent == tmp_path / "mpx"
    assert os.access(program, os.X_OK)
    before = program.stat().st_ino
    assert build.built_link() == program
    assert program.stat().st_ino == before
    assert sorted(program.parent.iterdir()) == [program, program.with_name("link.lock")]


Program = Callable[[int], str]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """`program(1)` builds a source that differs from any other number's, and returns its file's name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setattr(build, "SOURCE", source)

    def built(number: int) -> str:
        (source / "link.c").write_text(f"int main(void) {{ return {number}; }}\n")
        return build.built_link().name

    return built


def cached() -> set[str]:
    return {file.name for file in build.cache_folder().iterdir()}


def unused_for(name: str, age_s: float) -> None:
    then_s = time.time() - age_s
    os.utime(build.cache_folder() / name, (then_s, then_s))


def test_another_source_is_another_program(tmp_path: Path, program: Program) -> None:
    first, second = program(0), program(1)
    assert cached() == {first, second, "link.lock"}
    (tmp_path / "source" / "link.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(UsageError, match="nothing"):
        build.built_link()
    assert cached() == {first, second, "link.lock"}


def test_a_build_removes_what_a_killed_one_has_left_and_programs_that_nobody_has_taken_for_long(
    program: Program,
) -> None:
    old, used = program(0), program(1)
    (build.cache_folder() / f"{old}.new.99").write_text("half of it")
    unused_for(old, build.UNUSED_S + 60)
    unused_for(used, build.UNUSED_S + 60)
    assert program(1) == used  # takes it, so it is in use again
    fresh = program(2)
    assert cached() == {used, fresh, "link.lock"}


def test_without_a_compiler_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="C compiler"):
        build.built_link()


def test_what_is_built_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = build.built_link()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.built_link() == program


def test_a_relative_cache_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert build.cache_folder() == Path.home() / ".cache" / "mpx"
