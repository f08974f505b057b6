"""Uploads by root://: what the kernel tells of the library's connection, and a switch in mid-copy."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import Site
from web.root_processes import processes_with_the_library
from web.shared_servers import SharedServers

import mpx as api
from mpx.engine.tuner import Sample
from mpx.recognition.policy import Switch
from mpx.recognition.random_losses import RandomLosses
from mpx.transfer import background

FILE_BYTES = 12_000_001
SLOW = api.CopyOptions(rate_bps=32e6, streams=1)  # three seconds


class AsksForReno(RandomLosses):
    """Takes what has moved for random losses, once."""

    looked: list[Sample]

    def observe(self, now_s: float, sample: Sample, wanted: int) -> Switch | None:
        super().observe(now_s, sample, wanted)
        self.looked.append(sample)
        is_first = sum(each.queue_s is not None for each in self.looked) == 1 and sample.queue_s is not None
        return Switch("reno", "as the test asks for it") if is_first else None


@pytest.fixture
def root_site(web_servers: SharedServers) -> Iterator[Site]:
    with web_servers.site("root") as site:
        yield site


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Sample]:
    """What a copy measures; it asks for a switch."""
    found: list[Sample] = []
    monkeypatch.setattr(AsksForReno, "looked", found, raising=False)
    monkeypatch.setattr(background, "RandomLosses", AsksForReno)
    return found


def sent_with(name: str) -> bool:
    """Whether a connection of the library in a process of ours has that congestion control."""
    pids = [f"pid={pid}," for pid in processes_with_the_library()]
    told = subprocess.run(["ss", "-tinpO"], check=True, capture_output=True, text=True).stdout
    return any(f" {name} " in line and any(pid in line for pid in pids) for line in told.splitlines())


def test_an_upload_switches_on_its_way(here: Path, root_site: Site, looked: list[Sample]) -> None:
    content = os.urandom(FILE_BYTES)
    (here / "file").write_bytes(content)
    seen: list[bool] = []

    def look(progress: api.Progress) -> None:
        if progress.bytes_done:
            seen.append(sent_with("reno"))

    report = api.copy(str(here / "file"), root_site.url_of("file"), SLOW, on_progress=look)
    assert report.status == "done"
    assert (root_site.folder / "file").read_bytes() == content
    assert any(step.reason == "switched to reno: as the test asks for it" for step in report.timeline)
    assert True in seen
    told = [sample for sample in looked if sample.queue_s is not None]
    assert told and all(sample.streams == 1 for sample in told)
    assert looked[-1].busy_s > 0  # which none but the kernel knows


def test_a_policy_that_decides_nothing_does_not_switch(
    here: Path, root_site: Site, looked: list[Sample]
) -> None:
    (here / "file").write_bytes(os.urandom(1_000_001))
    for options in (api.CopyOptions(policy="scavenger"), api.CopyOptions(congestion="cubic")):
        assert api.copy(str(here / "file"), root_site.url_of("file"), options).status == "done"
    assert api.copy(root_site.url_of("file"), str(here / "down")).status == "done"  # its server sends
    assert not looked
