"""Copies from and to an S3 that answers otherwise, within this process: how they end."""

import os
import random
from pathlib import Path
from typing import Any

from s3.scripted_s3 import ScriptedS3
from web.lying import Outcome, copied

SMALL = random.Random(1).randbytes(300_000)
PART_BYTES = 40_000  # with the fixture `small_parts`, of files of more than ...
WHOLE_BYTES = 60_000
LEAST_BYTES = 5 << 20  # of a part but the last, at real servers
IN_PARTS = random.Random(2).randbytes(100_000)  # is sent in three
KEY = "folder/key"
URL = f"s3://bucket/{KEY}"


def down(server: ScriptedS3, tmp_path: Path, **options: Any) -> Outcome:
    """Download the object; it is there only where that succeeds, and then exactly as it is at the server."""
    outcome = copied(URL, tmp_path / "file", **{"timeout_s": 20.0, **options})
    assert (tmp_path / "file").exists() == (outcome.code == 0), outcome
    if outcome.code == 0:
        assert (tmp_path / "file").read_bytes() == server.objects[KEY]
    return outcome


def up(server: ScriptedS3, tmp_path: Path, data: bytes, **options: Any) -> Outcome:
    """Upload a file; a whole object or none is there, and the new one where that succeeds."""
    old = server.objects.get(KEY)
    (tmp_path / "source").write_bytes(data)
    os.utime(tmp_path / "source", (1e9, 1e9))  # the same each time
    options = {"timeout_s": 20.0, "overwrite": "always", **options}
    outcome = copied(tmp_path / "source", URL, **options)
    now = server.objects.get(KEY)
    assert now == data if outcome.code == 0 else now in (old, data), outcome
    return outcome
