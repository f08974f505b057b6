"""The dialogue with the shell that computes checksums: names as the real programs take them."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpx.endpoints.sftp import sums_script

SHELLS = [shell for shell in ("sh", "bash", "dash", "busybox") if shutil.which(shell)]
NAMES = st.binary(min_size=1, max_size=60).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)


def answers(folder: bytes, asked: bytes, shell: str = "sh") -> list[bytes]:
    """What the script says to requests, in a folder."""
    script = sums_script.command().removeprefix("exec sh -c ")
    run = f"exec {shell} {'sh ' if shell == 'busybox' else ''}-c {script}"
    done = subprocess.run(["sh", "-c", run], input=asked, capture_output=True, cwd=folder, check=False)
    assert not done.stderr, done.stderr
    begin, ready, *lines = done.stdout.split(b"\n")
    assert (begin, ready, lines[-1]) == (b"", sums_script.READY, b"")
    return lines[:-1]


@pytest.mark.parametrize("shell", SHELLS)
def test_odd_names(tmp_path: Path, shell: str) -> None:
    names = [b"plain", b"-rf", b"-", b"a b", b"it's", b'"', b"$(touch hit)", b"\xff\xfe", b"*", b"%41", b"#"]
    (tmp_path / "sub").mkdir()
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_bytes(name * 3)
    lines = answers(os.fsencode(tmp_path), sums_script.whole_request([*names, b"missing", b"sub"]), shell)
    assert lines.pop() == sums_script.END
    wanted = {sums_script.path(name): hashlib.sha256(name * 3).hexdigest() for name in names}
    assert sums_script.parse_whole(lines) == wanted
    assert not list(tmp_path.rglob("hit"))


@settings(max_examples=40)
@given(NAMES, st.binary(max_size=300), st.data())
def test_parts_of_files_of_any_name(name: bytes, content: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    with tempfile.TemporaryDirectory() as folder:
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(content)
        (line,) = answers(os.fsencode(folder), sums_script.part_request(name, start, end))
        assert sums_script.parse_part(line) == hashlib.sha256(content[start:end]).hexdigest()
        if sums_script.is_usual(name):
            first, last = answers(os.fsencode(folder), sums_script.whole_request([name]))
            assert last == sums_script.END
            wanted = hashlib.sha256(content).hexdigest()
            assert sums_script.parse_whole([first]) == {sums_script.path(name): wanted}


def test_a_part_of_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    asked = sums_script.part_request(b"missing", 0, 3) + sums_script.part_request(b"folder", 0, 3)
    assert [sums_script.parse_part(line) for line in answers(os.fsencode(tmp_path), asked)] == [None, None]


@given(st.lists(st.binary(max_size=200)))
def test_noise_is_no_checksum(lines: list[bytes]) -> None:
    for name, digest in sums_script.parse_whole(lines).items():
        assert len(digest) == 64, name
    for line in lines:
        assert sums_script.parse_part(line) is None or len(line) >= 66


def test_a_host_without_the_programs_says_so(tmp_path: Path) -> None:
    words = ["/bin/sh", "-c", sums_script.command().replace("exec sh", "exec /bin/sh")]
    done = subprocess.run(words, capture_output=True, env={"PATH": str(tmp_path)}, check=False)
    assert sums_script.NONE in done.stdout.split(b"\n")
