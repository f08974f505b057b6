"""Labs for the tests of this folder; without root each of them is skipped with a line that says so."""

from collections.abc import Iterator

import pytest
from mpx_lab.fixtures import lab_id, lab_root, make_lab  # noqa: F401  fixtures


@pytest.fixture(scope="session", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile the emulator once: each test has a home, and so a cache, of its own otherwise."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
