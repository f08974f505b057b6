"""A file on one side of a long path and its copy on the other: what the tests of faults have in common."""

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interop.mpx_process import Copy, Done, copy
from interop.stock_server import StockServer
from mpx_lab.proxy import DelayProxy


class LongPath:
    """A stock server behind a proxy of 30 ms, a file at one end and the place for its copy at the other.

    `served` and `near_folder` may be given where they must lie elsewhere, such as on a tiny file system.
    """

    def __init__(
        self,
        folder: Path,
        direction: str,
        size: int,
        *,
        rate_bps: float = 200e6,
        served: Path | None = None,
        near_folder: Path | None = None,
    ) -> None:
        self.folder = folder
        self.direction = direction
        self.size = size
        self.root = served or folder / "served"
        self.root.mkdir(exist_ok=True)
        near, far = (near_folder or folder) / "near.bin", self.root / "far.bin"
        self.source, self.target = (near, far) if direction == "up" else (far, near)
        self.content = random.Random(size).randbytes(size)
        self.source.write_bytes(self.content)
        a_minute_ago_s = time.time() - 60  # servers know whole seconds: any change shows in the time, too
        os.utime(self.source, (a_minute_ago_s, a_minute_ago_s))
        self.server = StockServer(self.root)
        self.server.start()
        self.proxy = DelayProxy(
            (self.server.host, self.server.port), rtt_s=0.03, total_rate_bps=rate_bps
        ).start()
        self.url = f"ftp://{self.proxy.host}:{self.proxy.port}{far}"
        self.names = (str(near), self.url) if direction == "up" else (self.url, str(near))

    def close(self) -> None:
        self.server.kill()
        self.proxy.stop()

    @property
    def delivered(self) -> int:
        """How many bytes the receiver has been given."""
        record = self.proxy.record()
        return record.up_bytes if self.direction == "up" else record.down_bytes

    @property
    def partials(self) -> list[Path]:
        """The unfinished files at the destination."""
        return list(self.target.parent.glob(".*.part"))

    def begin(self, *options: str) -> Copy:
        return Copy(self.folder, *self.names, *options)

    def copy(self, *options: str) -> Done:
        return copy(self.folder, *self.names, *options)

    def begin_until(self, share: float, eventually: Callable[..., None], *options: str) -> Copy:
        """Begin a copy and return when so much of the file was delivered."""
        before = self.delivered
        running = self.begin(*options)
        eventually(lambda: self.delivered - before >= share * self.size)
        return running

    def assert_whole(self, done: Done) -> None:
        assert done.code == 0, done.stderr
        assert self.target.read_bytes() == self.content
        assert self.partials == []

    def assert_next_run_completes(self, *options: str) -> Done:
        """Nothing stands under the final name now; the next run puts it there."""
        assert not self.target.exists()
        done = self.copy(*options)
        self.assert_whole(done)
        return done


@contextmanager
def tiny_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """Mount a file system of so many bytes; yields what gives it another size. Needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny file system needs root")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "tmpfs", folder], check=True)

    def resize(other: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={other}", folder], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
