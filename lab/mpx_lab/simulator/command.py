"""`mpx lab simulate`."""

import os
import sys
from functools import partial
from pathlib import Path

import click


@click.command("simulate", context_settings={"allow_interspersed_args": False})
@click.option(
    "--source",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Source of Linux, a linux-source-*.tar.xz (default: the newest in /usr/src).",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def simulate_command(source: Path | None, command: tuple[str, ...]) -> None:
    """Run COMMAND with simulated time: the clock advances only when all processes wait.

    COMMAND runs in a Linux kernel that is a process of its own, with the files of this machine and its own
    network devices. A lab there is never late, however busy this machine is, and a measurement takes as long
    as its computation.
    The exit code is the command's.
    """
    from mpx_lab.sigterm import sigterm_ends
    from mpx_lab.simulator.kernel import built_kernel
    from mpx_lab.simulator.machine import run_simulated

    out, errors = sys.stdout.buffer, sys.stderr.buffer
    with sigterm_ends():
        kernel = built_kernel(partial(click.echo, err=True), source)
        code = run_simulated(kernel, command, os.environ, folder=Path.cwd(), out=out, errors=errors)
    sys.exit(code)
