"""Servers that compute checksums in another way than mpx serve does, or say that they do: up and down.

What can be had is used; what cannot leaves files unverified, in one line, or ends the copy.
"""

import hashlib
import json
import posixpath
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foreign_servers import ENVIRONMENT, ProFtpd
from install_peers import FOREIGN
from interop.scripted_server import Dialogue
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from mpx_command import copied, mpx, refused
from random_bytes import random_bytes

from mpx import CopyOptions, copy
from mpx.engine.checksum import SECTION_BYTES
from mpx.errors import IntegrityError, MpxError, UsageError
from mpx.report import Report

CONTENT = b"abc"  # Adler-32 024d0127, which begins with a zero
LONG = SECTION_BYTES + 5
FORMS: dict[str, Callable[[int], str]] = {
    "without leading zeros": lambda value: f"{value:x}",
    "upper case": lambda value: f"{value:08X}",
    "0x": lambda value: f"0x{value:08x}",
    "with the algorithm": lambda value: f"ADLER32 {value:08x}",
    "with the name": lambda value: f"{value:08x} /up",
    "in decimal": lambda value: f"{value:010d}",
}
Answer = Callable[[Dialogue, str], str]


def stored(dialogue: Dialogue, name: str) -> bytes | None:
    assert isinstance(dialogue, StoringDialogue)
    return dialogue.server.files.get(name)


def server(form: Callable[[int], str], *, wrong: int = 0) -> StoringServer:
    def answer(dialogue: Dialogue, argument: str) -> str:
        return f"213 {form(zlib.adler32(stored(dialogue, argument.split(' ', 3)[3]) or b'') ^ wrong)}"

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
    with server(form, wrong=1) as there, pytest.raises(IntegrityError) as caught:
        copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=1))
    assert "disks" not in str(caught.value)  # nobody has read the bytes there: the server may be wrong


# --- what is asked for in other ways -----------------------------------------------------------------


def whole_files_only(dialogue: Dialogue, argument: str) -> str:
    algorithm, start, length, name = argument.split(" ", 3)
    content = stored(dialogue, name)
    if (start, length) != ("0", "-1"):
        return "504 only 0 -1 is implemented"
    if content is None:
        return "550 No such file"
    digest = f"{zlib.adler32(content):08x}" if algorithm == "ADLER32" else hashlib.md5(content).hexdigest()
    return f"213 {digest}"


@pytest.mark.parametrize("size", [3, 2_000_000, LONG], ids=["short", "long", "of several sections"])
@pytest.mark.parametrize("options", [{}, {"checksum": "md5"}], ids=["auto", "md5"])
def test_only_whole_files(tmp_path: Path, size: int, options: dict[str, str]) -> None:
    content = random_bytes(1000) * (size // 1000 + 1)
    (tmp_path / "here").write_bytes(content[:size])
    features = (*FEATURES, "CKSM ADLER32, MD5")
    with StoringServer({"CKSM": whole_files_only}, features=features) as there:
        up = copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=0, **options))
        down = copy(f"{there.url}/up", str(tmp_path / "down"), CopyOptions(retries=0, **options))
    assert (tmp_path / "down").read_bytes() == (tmp_path / "here").read_bytes()
    algorithm = "md5" if options or size <= 1024**2 else "adler32"
    wanted = {"algorithm": algorithm, "result": "verified", "bytes": {algorithm: size}}
    assert up.checksum == down.checksum == wanted


def test_dcache_offers_cksm_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(bytes(2_000_000))
    features = (*FEATURES, "CKSUM ADLER32,MD5,MD4,SHA-1")
    with StoringServer({"CKSM": whole_files_only}, features=features) as there:
        up = copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=0))
        down = copy(f"{there.url}/up", str(tmp_path / "down"), CopyOptions(retries=0))
    assert up.checksum["result"] == down.checksum["result"] == "verified"


def test_damage_is_noticed_where_only_whole_files_are_compared(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(bytes(LONG))

    def store(dialogue: Dialogue, argument: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        dialogue.server.files[argument] = dialogue.receive()[:-1] + b"x"
        return "226 done"

    script = {"CKSM": whole_files_only, "STOR": store}
    with StoringServer(script, features=(*FEATURES, "CKSM ADLER32, MD5")) as there:
        with pytest.raises(IntegrityError):
            copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=1))
        assert "/up" not in there.files


def asked_as(*verbs: str) -> dict[str, Answer]:
    """Answer these commands as FTP servers have them, with a digest of a whole file."""

    def answer(algorithm: str) -> Answer:
        def reply(dialogue: Dialogue, argument: str) -> str:
            content = stored(dialogue, argument.strip('"'))
            if content is None:
                return "550 No such file"
            if algorithm == "crc32":
                return f"250 {zlib.crc32(content):X}"
            return f"250 {hashlib.new(algorithm, content).hexdigest().upper()}"

        return reply

    kinds = {"XCRC": "crc32", "XMD5": "md5", "XSHA1": "sha1", "XSHA": "sha1", "XSHA256": "sha256"}
    return {verb: answer(kinds[verb]) for verb in verbs}


@pytest.mark.parametrize(
    ("verbs", "used"),
    [(("XCRC",), "crc32"), (("XCRC", "XMD5"), "md5"), (("XSHA",), "sha1"), (("XMD5", "XSHA256"), "sha256")],
)
def test_commands_of_other_servers(tmp_path: Path, verbs: tuple[str, ...], used: str) -> None:
    (tmp_path / "a b").write_bytes(CONTENT)
    with StoringServer(asked_as(*verbs), features=(*FEATURES, *verbs)) as there:
        up = copy(str(tmp_path / "a b"), f"{there.url}/a b", CopyOptions(retries=0))
        down = copy(f"{there.url}/a b", str(tmp_path / "down"), CopyOptions(retries=0))
    assert (tmp_path / "down").read_bytes() == CONTENT
    assert up.checksum == down.checksum == {"algorithm": used, "result": "verified", "bytes": {used: 3}}


# --- what is offered and then refused ------------------------------------------------------------------

REFUSALS = {
    "500": "500 CKSM failed",
    "502": "502 Command not implemented",
    "504": "504 Unknown checksum algorithm",
    "550": "550 Permission denied",
    "451": "451 Local error",
    "garbage": "213 done",
    "another length": "213 00",
    "another algorithm": "213 SHA1 " + "0" * 40,
    "not text": "213 \x00\x7f(((",
}
OFFERS = (*FEATURES, "CKSM ADLER32, MD5, SHA256", "XMD5", "HASH SHA-256;MD5")


def refusing(reply: str) -> StoringServer:
    answers = {verb: lambda *_: reply for verb in ("CKSM", "XMD5", "HASH")}
    return StoringServer(answers, features=OFFERS)


@pytest.mark.parametrize("reply", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("size", [3, LONG], ids=["short", "long"])
def test_refused_checksums_leave_files_unverified(tmp_path: Path, reply: str, size: int) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    names = ["a", "b", "c"] if size == 3 else ["a"]
    for name in names:
        (folder / name).write_bytes(bytes(size))
    with refusing(reply) as there:
        up = copy(str(folder), f"{there.url}/up", CopyOptions(recursive=True, retries=0))
        down = copy(f"{there.url}/up/a", str(tmp_path / "down"), CopyOptions(recursive=True, retries=0))
        assert sorted(there.files) == [f"/up/{name}" for name in names]
    assert (tmp_path / "down").read_bytes() == (folder / "a").read_bytes()
    for report, files in ((up, len(names)), (down, 1)):
        assert unverified_lines(report) == 1
        assert report.checksum == {
            "algorithm": "none", "result": "unverified", "bytes": {"none": size * files},
        }  # fmt: skip


def unverified_lines(report: Report) -> int:
    return sum(note.startswith("unverified") for note in report.notes)


@pytest.mark.parametrize("kind", ["500", "502", "504", "garbage", "another algorithm"])
def test_a_refused_checksum_that_was_asked_for_ends_the_copy_before_bytes_move(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    with refusing(REFUSALS[kind]) as there:
        there.files["/there"] = CONTENT
        ways = ((tmp_path / "here", f"{there.url}/up"), (f"{there.url}/there", tmp_path / "d"))
        for source, target in ways:
            with pytest.raises(UsageError, match="--checksum md5"):
                copy(str(source), str(target), CopyOptions(checksum="md5"))
        assert list(there.files) == ["/there"]
        assert not {"STOR", "RETR"} & set(there.heard)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("reply", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_checksum_that_was_asked_for_names_no_file(tmp_path: Path, reply: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/a").write_bytes(CONTENT)
    with refusing(reply) as there:
        with pytest.raises(MpxError):
            copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(recursive=True, checksum="md5"))
        assert not [name for name in there.files if not posixpath.basename(name).startswith(".")]


def test_a_refused_checksum_of_a_long_file_ends_the_copy_after_it_came(tmp_path: Path) -> None:
    """Nothing of it was read before, as it may be large; it does not get its name."""
    with refusing(REFUSALS["500"]) as there:
        there.files["/there"] = bytes(2_000_000)
        with pytest.raises(UsageError, match="--checksum md5"):
            copy(f"{there.url}/there", str(tmp_path / "here"), CopyOptions(checksum="md5"))
    assert not (tmp_path / "here").exists()


def test_the_next_best_is_used_where_the_best_is_refused(tmp_path: Path) -> None:
    def only_md5(dialogue: Dialogue, argument: str) -> str:
        algorithm, _, _, name = argument.split(" ", 3)
        if algorithm != "MD5":
            return "504 not this one"
        return f"213 {hashlib.md5(stored(dialogue, name) or b'').hexdigest()}"

    (tmp_path / "here").write_bytes(CONTENT)
    with StoringServer({"CKSM": only_md5}, features=(*FEATURES, "CKSM ADLER32, MD5, SHA256")) as there:
        report = copy(str(tmp_path / "here"), f"{there.url}/up", CopyOptions(retries=0))
    assert report.checksum == {"algorithm": "md5", "result": "verified", "bytes": {"md5": 3}}


def test_a_file_that_the_server_cannot_read_is_no_unverified_one(tmp_path: Path) -> None:
    """It has computed checksums of others, so what it says of this one concerns the file."""

    asked: list[str] = []

    def spoiled(dialogue: Dialogue, argument: str) -> str:
        name = argument.split(" ", 3)[3]
        asked.append(name)
        if name != asked[0]:
            return "550 Input/output error"
        return f"213 {zlib.adler32(stored(dialogue, name) or b''):08x}"

    (tmp_path / "here").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "here" / name).write_bytes(CONTENT)
    with StoringServer({"CKSM": spoiled}, checksums=True) as there:
        ended = mpx("copy", "-r", tmp_path / "here", f"{there.url}/up")
        refused(ended, 10, "2 of 3 files were not copied; copied 1 of 3 files")
        assert ended.err.count("Input/output error") == 2
        named = [name for name in there.files if not posixpath.basename(name).startswith(".")]
        assert named == [asked[0].replace(".", "").split("mpx-")[0]]


# --- a real server -----------------------------------------------------------------------------------


@pytest.fixture
def digesting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProFtpd]:
    """ProFTPD with mod_digest: HASH, XCRC, XMD5, XSHA and so on, of whole files."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    modules = FOREIGN / "usr/lib/proftpd"
    root = tmp_path / "served"
    root.mkdir()
    with ProFtpd(root, f"ModulePath {modules}\nLoadModule mod_digest.c\nDigestEngine on") as there:
        yield there


@pytest.mark.peers
@pytest.mark.parametrize("algorithm", ["auto", "md5", "sha256"])
def test_proftpd_with_digests(digesting: ProFtpd, tmp_path: Path, algorithm: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    sizes = {"a": 59, "a b": 100_000, 'q"x': 1, "md5": 7, "empty": 0, "long": 3_000_000}
    for name, size in sizes.items():
        (folder / name).write_bytes(random_bytes(size))
    report_path = tmp_path / "report"
    for source, target in ((folder, f"{digesting.url}up"), (f"{digesting.url}up", tmp_path / "down")):
        copied(mpx("copy", "-r", "--checksum", algorithm, "--report", report_path, source, target))
        told = json.loads(report_path.read_text())["checksum"]
        assert told["result"] == "verified"
        by_size = {"sha256": 100_067, "md5": 3_000_000}
        assert told["bytes"] == (by_size if algorithm == "auto" else {algorithm: 3_100_067})
    for file in folder.iterdir():
        assert (tmp_path / "down" / file.name).read_bytes() == file.read_bytes()
