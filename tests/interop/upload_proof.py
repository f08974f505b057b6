"""Servers that store something else than they are sent, or answer late or never; and uploads to them."""

from collections.abc import Callable
from pathlib import Path

from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer

from mpx import CopyOptions, copy
from mpx.report import Report

Answer = Callable[[Dialogue, str], str | None]


def options(**more: object) -> CopyOptions:
    return CopyOptions(**{"retries": 2, "timeout_s": 2.0, **more})


def upload(server: StoringServer, source: Path, **more: object) -> Report:
    return copy(str(source), server.url + "/up", options(**more))


def stores(server: StoringServer) -> int:
    return server.heard.count("STOR")


def keeping(change: Callable[[bytes, int], bytes]) -> Answer:
    """Store what `change` makes of the bytes; it is told how many files came before."""

    def store(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        before = dialogue.server.heard.count("STOR") - 1
        dialogue.server.files[name] = change(dialogue.receive(), before)
        return "226 Transfer complete."

    return store


def short(content: bytes, _: int) -> bytes:
    return content[: len(content) // 2]


def empty(content: bytes, _: int) -> bytes:
    return b""


def longer(content: bytes, _: int) -> bytes:
    return content + b"\n"


def cutting(dialogue: Dialogue, name: str) -> None:
    """Take everything, and be gone before the answer."""
    assert isinstance(dialogue, StoringDialogue)
    dialogue.server.files[name] = dialogue.receive()
    dialogue.cut()


def silent(dialogue: Dialogue, name: str) -> None:
    """Take everything, and never answer."""
    assert isinstance(dialogue, StoringDialogue)
    dialogue.server.files[name] = dialogue.receive()


def losing(dialogue: Dialogue, name: str) -> None:
    """Take everything, keep nothing, and be gone."""
    assert isinstance(dialogue, StoringDialogue)
    dialogue.receive()
    dialogue.cut()
