"""The memory of `mpx copy`, as the kernel counts it: many streams, and listings of many names."""

import os
from pathlib import Path

import pytest
from interop.long_path import LongPath
from interop.mpx_process import measured

MOST_BYTES = 150_000_000
MOST_OF_A_LISTING = 60_000_000  # it takes half of that, however many names there are
NAMES = int(os.environ.get("MPX_MEMORY_NAMES", "50000"))  # a million by hand


def peak_bytes(folder: Path, *arguments: object) -> int:
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    code, said, kib = measured("copy", "-q", *arguments, environment=environment)
    assert code == 0, said
    return kib * 1024


@pytest.mark.peers
@pytest.mark.parametrize("direction", ["up", "down"])
def test_64_streams(tmp_path: Path, direction: str) -> None:
    way = LongPath(tmp_path, direction, 100_000_000, rate_bps=800e6)
    try:
        peak = peak_bytes(tmp_path, *way.names, "--streams", "64")
        assert way.target.read_bytes() == way.content
        record = way.proxy.record()
    finally:
        way.close()
    used = sum(c.kind == "data" and c.up_bytes + c.down_bytes > 0 for c in record.connections)
    print(f"\n{direction}: {peak / 1e6:.0f} MB with {used} data connections")
    assert used >= 64
    assert peak < MOST_BYTES


def test_listing_many_names(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in (source, target):
        folder.mkdir()
        for i in range(NAMES // 1000):
            (folder / f"{i}").mkdir()
    # The same hard link everywhere, so that all of it is listed and nothing needs to be moved.
    first = source / "0" / "name0"
    first.write_bytes(b"x")
    for folder in (source, target):
        for i in range(NAMES):
            name = folder / f"{i // 1000}" / f"name{i % 1000}"
            if name != first:
                os.link(first, name) if i % 1000 else name.write_bytes(b"x")
            if not i % 1000:
                first = name
                os.utime(first, (1e9, 1e9))
    peak = peak_bytes(tmp_path, "-r", source, target)
    print(f"\n{peak / 1e6:.0f} MB after listing {NAMES} names at both ends")
    assert peak < MOST_OF_A_LISTING
