"""`mpx` and `python -m mpx`: signals end either cleanly before the rest is imported, which takes a while."""

import signal
import sys

TYPE_CHECKING = False  # as in mpx/__init__.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_OVER_SSH = ["serve", "--stdio"]  # as ssh starts it: whoever copies waits for it, so it needs no command line


def main() -> "NoReturn":
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback either until there is a handler of ours
    from mpx.files.limited_memory import reserve_little
    from mpx.files.standard_descriptors import hold_standard_descriptors
    from mpx.signals import end_at_once

    try:
        hold_standard_descriptors()
        reserve_little()
        end_at_once()
        run = _command()
    except (OSError, RuntimeError, MemoryError, SystemError, ImportError) as error:
        _cannot_start(error)
    run()
    sys.exit(0)


def _command() -> "Callable[[], None]":
    if sys.argv[1:] == _OVER_SSH:
        from mpx.serve import stdio

        return stdio.main
    from mpx import cli

    return cli.main


def _cannot_start(error: Exception) -> "NoReturn":
    """End where not even mpx itself can be loaded: descriptors, threads or memory are limited too much."""
    import os

    advice = (
        "install mpx anew" if isinstance(error, ModuleNotFoundError) else "raise the limits (see ulimit -a)"
    )
    why = "" if isinstance(error, SystemError) else str(error)  # that is how Python has it where it is short
    line = f"mpx: cannot start: {why or 'not enough memory'}; {advice}\n"
    try:
        os.write(2, line.encode("utf-8", "backslashreplace"))
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
