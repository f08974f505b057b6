"""Shared by all tests: a home of their own, the real GridFTP programs, and waiting for a condition."""

import contextlib
import gc
import math
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from install_peers import find_peer
from interop.foreign_servers import foreign, proftpd, pureftpd, pyftpd, with_password  # noqa: F401  fixtures
from interop.rounds import rounds  # noqa: F401  a fixture
from interop.vsftpd import vsftpd  # noqa: F401  a fixture
from sites import FAR, SITES, Site, make, opened
from web.servers.moto import MotoSite, moto_site
from web.servers.s3_site import S3Site
from web.servers.seaweedfs import seaweedfs_site
from web.shared_servers import SharedServers

from mpx.transfer import short_copy

LARGE_BYTES = 100_000  # files beyond that do not stay until the end
OF_THE_USER = (
    *("MPX_PASSWORD", "MPX_DEBUG", "MPX_MODEL", "GLOBUS_TCP_PORT_RANGE", "GLOBUS_TCP_SOURCE_RANGE"),
    *("MPX_CONTROLLER", "MPX_CONTROLLER_TOKEN", "MPX_PATHS", "MPX_NETWORKS"),
    *("MPX_TOKEN", "MPX_TOKEN_FILE", "XDG_CONFIG_HOME"),
    *("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("BEARER_TOKEN", "BEARER_TOKEN_FILE", "XDG_RUNTIME_DIR"),
)

# Under nohup, or in the background of a script, they would be ignored by all that tests start.
for _number, _handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

gc.disable()  # while tests are collected, as nothing of that is garbage


def pytest_collection_finish() -> None:
    gc.freeze()  # nor is it ever again: to look at it anew takes each worker a twentieth of its time
    gc.enable()


settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def loopback_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a busy machine from taking loopback for a long path, as short copies go another way there."""
    monkeypatch.setattr(short_copy, "LEAST_RTT_S", math.inf)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the homes of tests are: a folder of its own, as each is listed before the next is made."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def private_home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep tests away from the journals, the ~/.netrc and the settings of whoever runs them."""
    home = Path(tempfile.mkdtemp(dir=homes))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MPX_STATE_DIR", str(home / "state"))
    for name in OF_THE_USER:
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def peer() -> Callable[[str], str]:
    return find_peer


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition)` returns when the condition holds, and fails when it does not in 240 s.

    What lasts is looked at less often, as some conditions cost more than what is waited for.
    """

    def wait(condition: Callable[[], object], within_s: float = 240) -> None:
        began_s = time.monotonic()
        while not condition():
            waited_s = time.monotonic() - began_s
            assert waited_s < within_s, "the condition did not come true"
            time.sleep(min(0.1, 0.005 + waited_s / 20))

    return wait


@pytest.fixture(scope="session")
def used_folders() -> Iterator[Path]:
    """Where folders of tests that have ended are until all have.

    Each file that ext4 has just removed is in the way of each that it makes, for some seconds.
    """
    folder = Path(tempfile.mkdtemp(prefix="mpx-tests-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmp_path(used_folders: Path) -> Iterator[Path]:
    """A folder that other accounts can reach, as a server started by root serves as `nobody`.

    The parents of pytest's own are closed to others again by every pytest that starts meanwhile.
    """
    folder = Path(tempfile.mkdtemp(prefix="mpx-test-"))
    folder.chmod(0o755)
    yield folder
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                if (file := Path(place, name)).lstat().st_size > LARGE_BYTES:
                    file.unlink()
    with contextlib.suppress(FileNotFoundError):  # a test may have removed it
        folder.rename(used_folders / folder.name)


@pytest.fixture(params=FAR)
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A server, each of them in turn."""
    with opened(request.param, tmp_path) as site:
        yield site


@pytest.fixture(params=SITES)
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Where to copy to, or from: a server or a folder of this host, each of them in turn."""
    with opened(request.param, tmp_path) as site:
        yield site


@pytest.fixture(scope="session")
def web_servers() -> Iterator[SharedServers]:
    """Servers that speak HTTP; each is started when a test first asks for it."""
    with SharedServers() as servers:
        yield servers


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoSite]:
    """A server of S3, started once."""
    with moto_site(tmp_path_factory.mktemp("moto")) as site:
        yield site


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Site]:
    """Another one, which checks signatures and stores on disk."""
    with seaweedfs_site(tmp_path_factory.mktemp("seaweedfs")) as site:
        yield site


@pytest.fixture
def stock(tmp_path: Path) -> Iterator[Site]:
    """A stock globus-gridftp-server."""
    with opened("stock server", tmp_path) as site:
        yield site


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty folder of this host."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port where nobody listens, and nobody else will."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def file(here: Path) -> Path:
    """A small file of this host."""
    return make(here / "file", 1000)
