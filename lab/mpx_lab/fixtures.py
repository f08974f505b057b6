"""Labs for pytest: `pytest_plugins = ["mpx_lab.fixtures"]`, then a test takes `make_lab`."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mpx.errors import UsageError
from mpx_lab.emulator.build import built_link
from mpx_lab.lab import Lab, require_root
from mpx_lab.plan import Controller
from mpx_lab.programs import PACKAGES, find
from mpx_lab.topologies import named
from mpx_lab.topology import Topology

_numbers = itertools.count()


@pytest.fixture(scope="session")
def lab_root() -> None:
    """Skip the test where no lab can be made, with a line that says what is missing; fail it in CI."""
    try:
        require_root()
        for program in PACKAGES:
            find(program)
        built_link()
    except UsageError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture
def lab_id(lab_root: None) -> str:  # noqa: ARG001
    """An ID that no other test and no other run of the tests has."""
    return f"t{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def make_lab(lab_root: None) -> Iterator[Callable[..., Lab]]:  # noqa: ARG001
    """`make_lab("path")` or `make_lab(topology)` is a running lab, taken down after the test."""
    with ExitStack() as labs:

        def make(
            topology: str | Topology, *, scale: float = 1.0, controller: Controller | None = None
        ) -> Lab:
            chosen = named(topology) if isinstance(topology, str) else topology
            name = f"t{os.getpid()}-{next(_numbers)}"
            return labs.enter_context(Lab.up(chosen, name, scale=scale, controller=controller))

        yield make
