"""A line on a terminal with the elapsed time of an operation; nothing where standard error is no terminal."""

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from mpx.text import shown
from mpx.units import counted

INTERVAL_S = 1.0
_END_S = 1.0  # waited for the last output, as the terminal may be stopped


@contextmanager
def elapsed(what: str, whole_s: float) -> Iterator[None]:
    """Rewrite a line on standard error each second: `what`, and how many of `whole_s` seconds have passed."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    line = threading.Thread(target=_show, args=(shown(what), whole_s, ended), name="mpx-elapsed", daemon=True)
    line.start()
    try:
        yield
    finally:
        ended.set()
        line.join(_END_S)


def _show(what: str, whole_s: float, ended: threading.Event) -> None:
    passed_s, whole = 0, counted(round(whole_s), "second") if whole_s >= 1 else "less than a second"
    while True:
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"\r{f'{what}: {passed_s} of {whole}'[:width]:<{width}}", nl=False, err=True)
        if ended.wait(INTERVAL_S):
            break
        passed_s += 1
    click.echo(f"\r{'':<{width}}\r", nl=False, err=True)
