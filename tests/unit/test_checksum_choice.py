"""Which checksum a file is compared by: strong for short ones, cheap for long ones, as the server answers."""

import pytest

from mpx.engine.checksum_choice import MOST_REFUSALS, SHORT_BYTES, ChecksumChoice
from mpx.errors import MpxError, NoChecksum, OffsetsUnproven, UsageError

LONG = SHORT_BYTES + 1
SERVERS = {
    "mpx serve": ("xxh3", "md5", "adler32", "sha1", "sha256", "sha512"),
    "globus": ("md5", "adler32", "sha1", "sha256", "sha512"),
    "proftpd": ("crc32", "md5", "sha1", "sha256", "sha512"),
    "adler32 only": ("adler32",),
    "crc32 only": ("crc32",),
    "nothing": (),
}


def a_choice(server: str, asked: str = "auto") -> ChecksumChoice:
    return ChecksumChoice(asked, SERVERS[server].__contains__)


@pytest.mark.parametrize(
    ("server", "short", "long"),
    [
        ("mpx serve", "xxh3", "xxh3"),
        ("globus", "sha256", "adler32"),
        ("proftpd", "sha256", "md5"),
        ("adler32 only", "adler32", "adler32"),
        ("crc32 only", "crc32", "crc32"),
        ("nothing", "none", "none"),
    ],
)
def test_the_best_for_each_size(server: str, short: str, long: str) -> None:
    choice = a_choice(server)
    assert [choice.best(size) for size in (0, 1, SHORT_BYTES, None)] == [short] * 4
    assert choice.best(LONG) == long
    assert choice.verifies == (short != "none")
    assert not choice.is_required


def test_what_was_asked_for_is_for_every_size_and_required() -> None:
    choice = a_choice("globus", "md5")
    assert choice.candidates(1) == choice.candidates(LONG) == ("md5",)
    assert choice.is_required
    assert not a_choice("adler32 only", "md5").verifies
    assert not a_choice("globus", "none").verifies


def test_what_is_always_refused_is_asked_for_no_more() -> None:
    choice = a_choice("globus")
    for _ in range(MOST_REFUSALS):
        assert choice.best(1) == "sha256"
        choice.refused("sha256")
    assert choice.best(1) == "md5"


def test_what_was_answered_once_is_asked_for_still() -> None:
    choice = a_choice("globus")
    choice.answered("sha256")
    for _ in range(2 * MOST_REFUSALS):
        choice.refused("sha256")
    assert choice.best(1) == "sha256"


def test_who_relies_on_checksums_makes_them_required() -> None:
    assert not a_choice("nothing").rely()
    choice = a_choice("globus")
    assert choice.rely()
    assert choice.is_required
    assert isinstance(choice.not_honoured(NoChecksum(MpxError("no"))), OffsetsUnproven)
    assert isinstance(a_choice("globus", "md5").not_honoured(NoChecksum(MpxError("no"))), UsageError)


def test_one_line_says_that_all_are_refused() -> None:
    choice = a_choice("globus")
    lines = {choice.unverified(name, NoChecksum(MpxError(f"no {name}"))) for name in "abc"}
    assert lines == {"unverified: the server computes no checksums: no a"}
    choice.answered("md5")
    assert "b: no b" in choice.unverified("b", NoChecksum(MpxError("no b")))


def test_disks_and_memory_are_to_blame_only_where_the_bytes_were_read() -> None:
    assert "disks" not in a_choice("globus").why_differs("adler32")
    assert "disks" in ChecksumChoice("auto", lambda _: True, is_here=True).why_differs("xxh3")


@pytest.mark.parametrize(
    ("server", "asked", "long", "is_proof"),
    [
        ("mpx serve", "auto", "sha256", True),
        ("globus", "auto", "sha256", True),
        ("adler32 only", "auto", "adler32", False),
        ("nothing", "auto", "none", False),
        ("globus", "sha512", "sha512", True),
        ("globus", "md5", "md5", False),
        ("globus", "none", "none", False),
    ],
)
def test_where_data_can_be_changed_on_purpose(server: str, asked: str, long: str, is_proof: bool) -> None:
    choice = ChecksumChoice(asked, SERVERS[server].__contains__, is_exposed=True)
    assert (choice.best(LONG), choice.is_proof) == (long, is_proof)
