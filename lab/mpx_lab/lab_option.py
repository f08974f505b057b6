"""The option `--lab ID` of the subcommands of `mpx lab`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mpx_lab.state import DEFAULT_ID

F = TypeVar("F", bound=Callable[..., Any])


def lab_option(command: F) -> F:
    """Add `--lab ID` to a command, as its parameter `lab_id`."""
    return click.option(
        "--lab",
        "lab_id",
        metavar="ID",
        default=DEFAULT_ID,
        show_default=True,
        help="ID of the lab, where there are several.",
    )(command)
