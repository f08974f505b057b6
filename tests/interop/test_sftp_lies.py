"""SFTP servers that answer what is not so: the copy ends with the right bytes, or with one clear line."""

from pathlib import Path

import pytest
from install_peers import find_peer
from interop.ssh_copies import SFTP_SERVER, stand_in
from mpx_command import Ended, mpx
from sites import make

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def needs_a_server() -> None:
    find_peer("sshd")  # its package brings the program


def bent(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(folder, monkeypatch, how, Path(SFTP_SERVER))


def down(folder: Path, *options: str) -> Ended:
    make(folder / "far", 3 * MIB)
    return mpx("copy", f"there:{folder}/far", folder / "near", "--retries", "1", *options)


BROKEN = {
    "wrong_number": "an answer to what was not asked",
    "wrong_kind": "an answer of the wrong kind",
    "only_well": "no more than that all is well",
    "too_large": "a packet of 2147483647 bytes",
    "cut_within_a_field": "a packet ends within a field",
    "ends": "ssh to there",
    "ends_within_a_packet": "ssh to there",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_dialogue_that_makes_no_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    bent(how, tmp_path, monkeypatch)
    ended = down(tmp_path)
    assert ended.code == 6, (ended.code, ended.err)
    assert BROKEN[how] in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not (tmp_path / "near").exists()


def test_less_data_than_was_asked_for_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bent("short_data", tmp_path, monkeypatch)
    ended = down(tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "near").read_bytes() == (tmp_path / "far").read_bytes()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no_data", "sends 0 bytes"),
        ("more_data", "its SFTP server is broken"),
        ("longer", "ended after"),
        ("shorter", "longer than"),
    ],
)
def test_data_that_are_not_what_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    bent(how, tmp_path, monkeypatch)
    ended = down(tmp_path)
    assert ended.code == 8, (ended.code, ended.err)
    assert words in ended.err
    assert not (tmp_path / "near").exists()


def test_an_upload_that_is_stored_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bent("stored_shorter", tmp_path, monkeypatch)
    make(tmp_path / "near", 3 * MIB)
    ended = mpx("copy", tmp_path / "near", f"there:{tmp_path}/far", "--retries", "1")
    assert ended.code == 8, (ended.code, ended.err)
    assert "are stored at the destination" in ended.err
    assert not (tmp_path / "far").exists()
