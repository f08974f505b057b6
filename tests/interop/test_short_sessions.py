"""Servers that end every session after some commands: the copy goes on over others as long as it gets on."""

import socket
from pathlib import Path

import pytest
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from sites import make

from mpx import CopyOptions, copy

COMMANDS = 40
FILES = 60
OPTIONS = CopyOptions(recursive=True, retries=4)


class ShortDialogue(StoringDialogue):
    """A session of so many commands, its login among them."""

    left = COMMANDS

    def answer(self, verb: str, argument: str) -> str | None:
        self.left -= 1
        if self.left < 0:
            self.say("421 That was enough.")
            self.control.shutdown(socket.SHUT_RDWR)
            raise ConnectionError
        return super().answer(verb, argument)


class SilentlyShortDialogue(ShortDialogue):
    """The same, without a word."""

    def say(self, text: str) -> None:
        if not text.startswith("421"):
            super().say(text)


def short_server(dialogue: type[StoringDialogue], files: dict[str, bytes], *, mode_e: bool) -> StoringServer:
    server = StoringServer(
        files=files, mode_e=mode_e, features=(*FEATURES, "ERET", "ESTO", "PARALLEL"), checksums=True
    )
    server.dialogue = dialogue
    return server


@pytest.mark.parametrize("dialogue", [ShortDialogue, SilentlyShortDialogue])
@pytest.mark.parametrize("mode_e", [False, True])
def test_many_files_from_a_server_with_short_sessions(
    dialogue: type[StoringDialogue], mode_e: bool, tmp_path: Path
) -> None:
    files = {f"/tree/{i % 7}/{i}": bytes([i]) * 1000 for i in range(FILES)}
    with short_server(dialogue, files, mode_e=mode_e) as server:
        copy(server.url + "/tree", str(tmp_path / "tree"), OPTIONS)
    assert {str(path): path.read_bytes() for path in (tmp_path / "tree").rglob("*") if path.is_file()} == {
        f"{tmp_path}{name}": content for name, content in files.items()
    }


@pytest.mark.parametrize("dialogue", [ShortDialogue, SilentlyShortDialogue])
@pytest.mark.parametrize("mode_e", [False, True])
def test_many_files_to_a_server_with_short_sessions(
    dialogue: type[StoringDialogue], mode_e: bool, tmp_path: Path
) -> None:
    files = {
        f"/tree/{i % 7}/{i}": make(tmp_path / f"tree/{i % 7}/{i}", 1000).read_bytes() for i in range(FILES)
    }
    with short_server(dialogue, {}, mode_e=mode_e) as server:
        copy(str(tmp_path / "tree"), server.url + "/tree", OPTIONS)
        assert server.files == files
        server.files["/tree/0/0"] = b"older"
        copy(str(tmp_path / "tree"), server.url + "/tree", OPTIONS)  # which asks for all that is there
        assert server.files == files


def test_a_rehearsal_over_short_sessions(tmp_path: Path) -> None:
    for i in range(FILES):
        make(tmp_path / f"tree/{i}", 1000)
    with short_server(ShortDialogue, {"/tree/0": b"older"}, mode_e=False) as server:
        report = copy(
            str(tmp_path / "tree"), server.url + "/tree", CopyOptions(recursive=True, retries=4, dry_run=True)
        )
    assert report.files.total == FILES
