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
    The exit code is the command's; 127 and 126, as of a shell, where it is not there or no program. Without
    root COMMAND, which is root inside, can still use no file of this machine that its user cannot.
    """
    from mpx_lab.sigterm import sigterm_ends
    from mpx_lab.simulator.kernel import built_kernel
    from mpx_lab.simulator.machine import check_possible, run_simulated

    check_possible(command, os.environ, Path.cwd())
    out, errors = sys.stdout.buffer, sys.stderr.buffer
    with sigterm_ends():
        kernel = built_kernel(partial(click.echo, err=True), source)
        code = run_simulated(kernel, command, os.environ, folder=Path.cwd(), out=out, errors=errors)
    sys.exit(code)
