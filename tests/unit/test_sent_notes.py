"""What was sent to a server that keeps no times: believed only while neither side has changed."""

import math
import os
import resource

from hypothesis import given
from hypothesis import strategies as st

from mpx.engine.endpoint import FileInfo, Kind
from mpx.files.state_folder import StateFolder
from mpx.location import Location
from mpx.transfer.sent_notes import Sent, SentNotes, is_unchanged

HERE = Location("ftp", "/up", "host", 21)
TIMES = st.one_of(st.none(), st.floats(0, 4e9))


def info(size_bytes: int | None, modified_s: float | None) -> FileInfo:
    return FileInfo(Kind.FILE, size_bytes, modified_s)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), TIMES, TIMES, TIMES, TIMES)
def test_only_what_has_not_changed_is_known(
    sent: int,
    here: int,
    there: int,
    sent_s: float | None,
    here_s: float | None,
    given_s: float | None,
    there_s: float | None,
) -> None:
    if is_unchanged(Sent("/a", sent, sent_s, given_s), info(here, here_s), info(there, there_s)):
        assert sent == here == there
        assert sent_s is not None
        assert sent_s == here_s
        assert given_s is None or there_s is None or math.isclose(given_s, there_s, abs_tol=1.0)


def test_notes_are_found_again() -> None:
    name = "/f\udcff\u00fc"
    SentNotes(HERE).record([Sent(name, 5, 1.5, 100.0), Sent("/b", 6, None, None)])
    notes = SentNotes(HERE)
    assert notes.knows(name, info(5, 1.5), info(5, 100.4))
    assert not notes.knows(name, info(5, 1.5), info(5, 102.0))
    assert not notes.knows(name, info(5, 2.5), info(5, 100.0))
    assert not notes.knows("/b", info(6, None), info(6, None))
    assert not notes.knows("/c", info(5, 1.5), info(5, 100.0))
    assert not SentNotes(Location("ftp", "/up", "other", 21)).knows(name, info(5, 1.5), info(5, 100.0))
    assert not SentNotes(HERE, "https://s3.example.org").knows(name, info(5, 1.5), info(5, 100.0))


def test_a_source_that_was_written_since_is_another_one() -> None:
    notes = SentNotes(HERE)
    notes.record([Sent("/a", 5, 1.0, 1.9)])
    assert notes.contradicts("/a", info(5, 1.5), info(5, 1.9))  # within a second of what is there
    assert not notes.contradicts("/a", info(5, 1.0), info(5, 1.9))
    assert not notes.contradicts("/a", info(5, 1.5), info(5, 10.0))  # which is not what was sent
    assert not notes.contradicts("/b", info(5, 1.5), info(5, 1.9))


def test_the_latest_note_counts() -> None:
    notes = SentNotes(HERE)
    notes.record([Sent("/a", 5, 1.0, 100.0)])
    notes.record([Sent("/a", 6, 2.0, 200.0)])
    assert not notes.knows("/a", info(5, 1.0), info(5, 100.0))
    assert notes.knows("/a", info(6, 2.0), info(6, 200.0))


def test_a_broken_file_of_notes_is_as_good_as_none() -> None:
    with StateFolder() as folder:
        (folder.path / "sent.sqlite").write_bytes(b"broken" * 1000)
    notes = SentNotes(HERE)
    notes.record([Sent("/a", 5, 1.0, 100.0)])
    assert not notes.knows("/a", info(5, 1.0), info(5, 100.0))


def test_where_no_descriptor_is_left_nothing_is_known_or_noted() -> None:
    notes = SentNotes(HERE)
    notes.record([Sent("/a", 5, 1.5, 100.0)])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the lowest number that is free
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        notes.record([Sent("/b", 5, 1.5, 100.0)])
        assert not notes.knows("/a", info(5, 1.5), info(5, 100.0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert notes.knows("/a", info(5, 1.5), info(5, 100.0))
