"""The emulator is built once for each version of its source."""

import os
from pathlib import Path

import pytest
from mpx_lab.emulator import build

from mpx.errors import UsageError


def test_it_is_built_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = build.built_link()
    assert program.parent == tmp_path / "mpx"
    assert os.access(program, os.X_OK)
    before = program.stat()
    assert build.built_link() == program
    assert program.stat() == before
    assert list(program.parent.iterdir()) == [program]


def test_another_source_is_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setattr(build, "SOURCE", source)
    (source / "link.c").write_text("int main(void) { return 0; }\n")
    first = build.built_link()
    (source / "link.c").write_text("int main(void) { return 1; }\n")
    assert build.built_link() != first
    (source / "link.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(UsageError, match="nothing"):
        build.built_link()
    assert len(list((tmp_path / "cache" / "mpx").iterdir())) == 2


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
