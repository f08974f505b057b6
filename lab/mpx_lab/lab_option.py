"""Every subcommand of `mpx lab` takes the ID of the lab it means."""

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
        help="Which lab, where there are several.",
    )(command)
