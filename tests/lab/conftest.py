"""Labs for the tests of this folder; without root each of them is skipped with a line that says so."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from install_peers import CACHE
from lab_pair import Pair
from mpx_lab.emulator.link import EmulatedLink
from mpx_lab.fixtures import lab_id, lab_root, make_lab  # noqa: F401  fixtures
from mpx_lab.shape import Shape
from mpx_lab.simulator.kernel import SOURCES, built_kernel
from simulation import Run, run_python
from steered import sink  # noqa: F401  a fixture
from wires import OPEN, Wire


@pytest.fixture(scope="session", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile the emulator once: each test has a home, and so a cache, of its own otherwise."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two namespaces; as root only, and only where a TAP device can be made."""
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        message = "needs root and /dev/net/tun, for network namespaces and TAP devices"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with Pair(f"t{os.getpid()}-pair") as made:
        yield made


@pytest.fixture
def wired(pair: Pair) -> Iterator[Callable[..., tuple[EmulatedLink, Wire]]]:
    """`wired(shape)` starts a link that has this shape from A to B, and its wire."""
    wires = []

    def start(there: Shape, back: Shape = OPEN) -> tuple[EmulatedLink, Wire]:
        link = pair.start(there, back)
        wires.append(Wire(pair))
        return link, wires[-1]

    yield start
    for wire in wires:
        wire.close()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The simulator's kernel, which install_peers.py has built; as root only, as its labs are."""
    if os.geteuid() != 0 or not list(SOURCES.glob("linux-source-*.tar.xz")):
        message = "needs root and the Debian packages linux-source-6.12, flex, bison and bc"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    return built_kernel(lambda _: None)


@pytest.fixture
def run(kernel: Path, tmp_path: Path) -> Run:
    """`run(program)` runs Python on a machine with simulated time and returns the lines that it says."""
    return partial(run_python, kernel, tmp_path)
