"""What an interrupted copy has left: journals, and notes of what was sent."""

import atexit
import os
import tempfile
from pathlib import Path

from mpx.engine.endpoint import FileInfo, Kind
from mpx.files.state_folder import StateFolder
from mpx.location import Location
from mpx.transfer.journal import leftovers
from mpx.transfer.journal_reader import boot_id, read_journal
from mpx.transfer.sent_notes import Sent, SentNotes

_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_state = Path(_folder.name)
_journal = _state / "0123456789ab.journal"
_notes = _state / "sent.sqlite"
_source = FileInfo(Kind.FILE, 7, 1.5)
SERVER = Location("ftp", "/", "host", 21)


def _noted() -> bytes:
    os.environ["MPX_STATE_DIR"] = str(_state)
    SentNotes(SERVER).record([Sent("/f", 7, 1.5, 2.5), Sent("/g", 8, None, None)])
    return _notes.read_bytes()


BOOT = b"@boot@"  # stands for what this host says; nothing is believed after it was started again
HEAD = b'{"mpx": 1, "source": "/a", "destination": "ftp://h:2811/b", "boot": "%s"}\n' % BOOT
BEGUN = b'{"file": "/b/f", "partial": "/b/.f.0123456789ab.mpx", "size": 1000, "modified": 1.5}\n'
SEEDS = [
    HEAD + BEGUN + b'{"arrived": [[0, 100], [200, 300]], "of": "/b/f"}\n{"lost": [[50, 60]], "of": "/b/f"}\n',
    HEAD + b'{"finished": [3, 4000]}\n' + BEGUN + b'{"done": "/b/f", "given_up": true}\n',
    HEAD + BEGUN + b'{"done": "/b/f"}\n' + BEGUN.replace(b"1.5", b"null"),
    HEAD + BEGUN[:30],
    HEAD.replace(b'"mpx": 1', b'"mpx": 2') + BEGUN,
    HEAD.replace(BOOT, b"") + BEGUN,
    _noted(),
]
ALLOWED = ()
WEIGHT = 6


def parse(data: bytes) -> None:
    """Read it as a journal, which people are shown and a copy goes on from, and as the notes."""
    os.environ["MPX_STATE_DIR"] = str(_state)
    is_notes = data.startswith(b"SQLite")
    (_notes if is_notes else _journal).write_bytes(data.replace(BOOT, boot_id().encode()))
    if is_notes:
        for name in ("/f", "/g"):
            SentNotes(SERVER).knows(name, _source, FileInfo(Kind.FILE, 7, 2.5))
        SentNotes(SERVER).record([Sent("/f", 7, 1.5, 2.5)])
        return
    for left in leftovers():
        assert isinstance(left.source, str)
    with StateFolder() as folder:
        files = read_journal(folder, _journal.name).files.values()
    for file in files:
        assert isinstance(file.final, str)
        assert isinstance(file.partial, str)
        assert file.modified_s is None or isinstance(file.modified_s, float)
        assert 0 <= file.size_bytes < 1 << 63
        assert all(0 <= start < end < 1 << 63 for start, end in file.arrived)
