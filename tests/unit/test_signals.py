"""What a copy and a probe take for a wish of the user to stop."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from mpx.cli import Signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_and_a_second_one_ends(number: signal.Signals) -> None:
    program = """
        import os
        from mpx.cli import Signals
        with Signals() as signals:
            os.kill(os.getpid(), NUMBER)
            print(signals.cancel.is_set(), signals.received == NUMBER, flush=True)
            os.kill(os.getpid(), NUMBER)
            print("still there")
    """.replace("NUMBER", str(int(number)))
    done = run(program)
    assert (done.returncode, done.stdout) == (-number, "True True\n")


def test_afterwards_signals_are_as_usual() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        with Signals():
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_numpy_starts_no_threads_whose_want_would_be_a_signal() -> None:
    """OpenBLAS raises SIGINT where it cannot start one for each core."""
    program = """
        import os
        from mpx.cli import Signals
        with Signals():
            import numpy
            print(len(os.listdir("/proc/self/task")))
    """
    assert run(program).stdout == "1\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if "BLAS" not in name}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
