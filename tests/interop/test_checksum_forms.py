"""Servers that write a checksum in another form than we do: it is compared by value, up and down."""

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer

from mpx import CopyOptions, copy
from mpx.errors import IntegrityError

CONTENT = b"abc"  # Adler-32 024d0127, which begins with a zero
FORMS: dict[str, Callable[[int], str]] = {
    "without leading zeros": lambda value: f"{value:x}",
    "upper case": lambda value: f"{value:08X}",
    "0x": lambda value: f"0x{value:08x}",
    "with the algorithm": lambda value: f"ADLER32 {value:08x}",
}


def server(form: Callable[[int], str], *, wrong: int = 0) -> StoringServer:
    def answer(dialogue: Dialogue, argument: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        name = argument.split(" ", 3)[3]
        return f"213 {form(zlib.adler32(dialogue.server.files[name]) ^ wrong)}"

    return StoringServer({"CKSM": answer}, checksums=True)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_checksum_is_compared_by_value(tmp_path: Path, form: Callable[[int], str]) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    with server(form) as there:
        up = copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=0))
        down = copy(f"{there.url}/up", str(tmp_path / "down"), CopyOptions(retries=0))
        assert there.files["/up"] == (tmp_path / "down").read_bytes() == CONTENT
    assert up.checksum["result"] == down.checksum["result"] == "verified"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_another_value_is_a_mismatch_in_every_form(tmp_path: Path, form: Callable[[int], str]) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    with server(form, wrong=1) as there, pytest.raises(IntegrityError):
        copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=1))
