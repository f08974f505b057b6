"""The endpoints that the contract holds for: each of tests/sites.py in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import Site, opened

from mpx.engine.endpoint import Endpoint

THAT_MAKE_LINKS = ("local", "stock server", "sftp")


@pytest.fixture
def site(there: Site) -> Site:
    return there


@pytest.fixture
def end(site: Site) -> Endpoint:
    return site.open(writing=True)


@pytest.fixture(params=THAT_MAKE_LINKS)
def links(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as site:
        yield site
