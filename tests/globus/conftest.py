"""Two collections at a service of ours, and a user whom that lets in."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from globus.fake_globus import CLIENT_ID, ONE, OTHER, SECRET, FakeGlobus, fake_globus


@dataclass
class Collections:
    """The service, and two collections; their folders are on this host."""

    fake: FakeGlobus
    one: Path
    other: Path
    one_url: str = f"globus://{ONE}/"
    other_url: str = f"globus://{OTHER}/"


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the login of whoever runs the tests out of them."""
    for name in [name for name in os.environ if name.startswith("GLOBUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def service(no_settings: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Collections]:
    """The service, and nobody who is logged in."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    with fake_globus({ONE: one, OTHER: other}) as (fake, url):
        for name in ("TRANSFER", "AUTH"):
            monkeypatch.setenv(f"GLOBUS_SDK_SERVICE_URL_{name}", url)
        yield Collections(fake, one, other)


@pytest.fixture
def collections(service: Collections, monkeypatch: pytest.MonkeyPatch) -> Collections:
    """The service, and a client whose id and secret are in the environment."""
    monkeypatch.setenv("GLOBUS_CLIENT_ID", CLIENT_ID)
    monkeypatch.setenv("GLOBUS_CLIENT_SECRET", SECRET)
    return service
