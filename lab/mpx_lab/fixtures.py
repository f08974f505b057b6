"""Labs for pytest: `pytest_plugins = ["mpx_lab.fixtures"]`, then a test takes `make_lab`.

Their IDs are tPID-N with the process id of the tests, or tPID-NAME where a test chooses one. Those that
killed tests have left, which no later run would mean by its own IDs, are taken down by the next run.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from mpx.errors import UsageError
from mpx_lab import cleanup, state
from mpx_lab.emulator.build import built_link
from mpx_lab.lab import Lab, require_root
from mpx_lab.programs import PACKAGES, find
from mpx_lab.steps import Controller
from mpx_lab.topologies import named
from mpx_lab.topology import Topology

OF_TESTS = re.compile(r"t(\d+)-[a-z0-9-]+")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def lab_root() -> None:
    """Skip the test where no lab can be built, saying what is missing; fail it in CI."""
    try:
        require_root()
        for program in PACKAGES:
            find(program)
        built_link()
    except UsageError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    take_down_abandoned()


def take_down_abandoned() -> None:
    """Take down the labs of tests whose process has ended; needs root."""
    for lab_id in state.lab_ids():
        of_tests = OF_TESTS.fullmatch(lab_id)
        if of_tests and not Path("/proc", of_tests[1]).exists():
            with (
                suppress(state.LabError),
                state.locked(lab_id, wait=False),
            ):  # another test run does it already
                cleanup.remove(lab_id)


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
