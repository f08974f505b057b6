"""What the commands take for a wish of the user to stop, at every moment from their start on."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mpx.signals import Signals

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("first", ENDING)
@pytest.mark.parametrize("second", ENDING)
def test_a_signal_cancels_and_a_second_one_of_any_kind_ends(
    first: signal.Signals, second: signal.Signals
) -> None:
    program = f"""
        import os
        from mpx.signals import Signals
        with Signals(grace_s=None) as signals:
            os.kill(os.getpid(), {int(first)})
            signals.cancel.wait()
            print(signals.received == {int(first)}, flush=True)
            while True:  # two of a kind at once are one
                os.kill(os.getpid(), {int(second)})
    """
    done = run(program)
    assert (done.returncode, done.stdout) == (128 + second, "True\n")
    assert done.stderr == f"mpx: ended at once by a second signal, {second.name}\n"


@pytest.mark.parametrize("number", ENDING)
def test_what_does_not_end_is_ended(number: signal.Signals) -> None:
    """As a write to a file system that does not answer; what belongs into a report is written before."""
    program = f"""
        import os, threading
        from mpx.signals import Signals
        with Signals() as signals:
            signals.last_words = lambda: print("report", flush=True)
            os.kill(os.getpid(), {int(number)})
            threading.Event().wait()
    """
    done = run(program)
    assert (done.returncode, done.stdout) == (128 + number, "report\n")
    assert done.stderr.startswith("mpx: interrupted; ")
    assert done.stderr.count("\n") == 1


def test_an_ssh_that_asks_for_a_password_is_ended_with_what_does_not_end() -> None:
    program = """
        import os, signal, subprocess
        from mpx.signals import Signals
        with Signals(grace_s=None) as signals:
            child = subprocess.Popen(["sleep", "1000"])
            print(child.pid, flush=True)
            os.kill(os.getpid(), signal.SIGINT)
            signals.cancel.wait()
            while True:
                os.kill(os.getpid(), signal.SIGTERM)
    """
    done = run(program)  # waits until nobody holds its standard output any more
    assert done.returncode == 128 + signal.SIGTERM
    assert not Path("/proc", done.stdout.strip(), "exe").exists()


@pytest.mark.parametrize("number", ENDING)
def test_what_does_not_end_is_ended_where_no_thread_is_left(number: signal.Signals) -> None:
    """As under `ulimit -v`: room for the stack of a thread, and so the thread, is not to be had."""
    program = f"""
        import os, resource, threading
        from pathlib import Path
        from mpx.signals import Signals
        with Signals() as signals:
            signals.last_words = lambda: None
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used, used))
            try:
                threading.Thread(target=print).start()
            except RuntimeError:
                os.kill(os.getpid(), {int(number)})
            threading.Event().wait(60)
    """
    assert run(program).returncode == 128 + number


def test_last_words_that_block_as_well_are_not_waited_for() -> None:
    program = """
        import os, signal, threading
        from mpx.signals import Signals
        with Signals() as signals:
            signals.last_words = threading.Event().wait
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait()
    """
    assert run(program).returncode == 143


def test_two_of_a_kind_at_once_are_one() -> None:
    """`timeout` sends its signal to the command, and to the process group of the command."""
    program = """
        import os, signal
        from mpx.signals import Signals
        with Signals(grace_s=None) as signals:
            for _ in range(2):
                signals._received(signal.SIGTERM)
            print(signals.cancel.is_set())
    """
    assert run(program).stdout == "True\n"


def test_a_signal_is_taken_while_the_main_thread_is_in_a_call_that_does_not_return() -> None:
    """As in one to a file system over the network; Python's own handlers wait for it."""
    program = """
        import ctypes, os, signal, threading
        from mpx.signals import Signals
        with Signals() as signals:
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            while True:
                ctypes.CDLL(None).pause()
    """
    assert run(program).returncode == 143


def test_a_signal_is_taken_where_the_lock_of_the_event_is_held() -> None:
    """It comes between any two instructions, within Event.wait as well."""
    program = """
        import os, signal
        from mpx.signals import Signals
        with Signals(grace_s=None) as signals:
            with signals.cancel._cond:
                os.kill(os.getpid(), signal.SIGTERM)
            print(signals.cancel.wait())
    """
    assert run(program).stdout == "True\n"


def test_afterwards_signals_are_as_before() -> None:
    def mine(*_: object) -> None: ...

    before = {number: signal.signal(number, mine) for number in ENDING}
    try:
        with Signals():
            assert all(signal.getsignal(number) is not mine for number in ENDING)
        assert all(signal.getsignal(number) is mine for number in ENDING)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_hang_up_that_is_ignored_stays_so() -> None:
    """`nohup` starts commands like that."""
    program = """
        import os, signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        from mpx.signals import Signals, end_at_once
        end_at_once()
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
        print(signals.received)
    """
    assert run(program).stdout == "None\n"


def test_numpy_starts_no_threads_whose_want_would_be_a_signal() -> None:
    """OpenBLAS raises SIGINT where it cannot start one for each core."""
    program = """
        import os
        from mpx.signals import Signals
        with Signals():
            before = len(os.listdir("/proc/self/task"))
            import numpy
            print(len(os.listdir("/proc/self/task")) - before)
    """
    assert run(program).stdout == "0\n"


# --- the start of a command ---------------------------------------------------------------------------

# Runs `mpx WORDS`, raises a signal as the AT-th module after the handlers is looked for, and gets no further.
RAISES_AT = """
    import os, signal, sys, time
    def hook(event, arguments):
        global count
        if event == "import" and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            count += 1
            if count == AT:
                os.kill(os.getpid(), NUMBER)
                while True:  # else the command may have come to its end before the thread hears of it
                    time.sleep(1)
    count = 0
    sys.addaudithook(hook)
    sys.argv[0] = "mpx"
    from mpx.__main__ import main
    try:
        main()
    finally:
        if AT == 0:
            print(count, file=sys.stderr)
"""


def start(words: list[str], number: int, at: int) -> subprocess.CompletedProcess[str]:
    return run(RAISES_AT.replace("NUMBER", str(int(number))).replace("AT", str(at)), *words)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("name", ["copy", "list"])
def test_a_signal_while_it_starts_ends_it_with_one_line_at_most(
    name: str, number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"content")
    words = {"copy": [str(tmp_path / "a"), str(tmp_path / "b")], "list": [str(tmp_path)]}[name]
    imports = int(start([name, *words], number, 0).stderr.split()[-1])
    assert imports > 50
    (tmp_path / "b").unlink(missing_ok=True)
    for at in sorted({1, 3, *range(5, imports, imports // 4)}):
        done = start([name, *words], number, at)
        assert done.returncode == 128 + number, (at, done.stderr)
        assert done.stderr.startswith("mpx: interrupted"), (at, done.stderr)
        assert done.stderr.count("\n") == 1, (at, done.stderr)
        assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_before_a_command_that_cleans_up_begins(number: signal.Signals) -> None:
    done = start(["lab", "list"], number, 60)
    assert (done.returncode, done.stderr) == (128 + number, f"mpx: interrupted by {number.name}\n")


def test_nothing_that_takes_long_is_imported_before_signals_count() -> None:
    program = """
        import signal, sys, mpx.__main__
        class Reached(BaseException):
            pass
        def taken(*_):
            raise Reached
        signal.signal = taken  # the first thing that main does
        try:
            mpx.__main__.main()
        except Reached:
            pass
        print(*sorted(name for name in sys.modules if name.partition(".")[0] == "mpx"))
        print("typing" in sys.modules, "click" in sys.modules)
    """
    ours, others = run(program).stdout.splitlines()
    assert ours.split() == ["mpx", "mpx.__main__", "mpx._version"]
    assert others == "False False"


def heed_signals() -> None:
    """What runs the tests may ignore some, as nohup does."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if "BLAS" not in name}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *words],
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=heed_signals,
        check=False,
    )


def test_signals_that_were_blocked_are_heard() -> None:
    """Whoever starts mpx may have blocked them for itself."""
    program = """
        import os, signal, threading
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        from mpx.signals import end_at_once
        end_at_once()
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(60)
    """
    done = run(program)
    assert (done.returncode, done.stderr) == (143, "mpx: interrupted by SIGTERM\n")


def test_what_does_not_end_says_what_its_command_says() -> None:
    program = """
        import os, signal, threading
        from mpx.signals import Signals
        with Signals(unfinished="interrupted") as signals:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait()
    """
    done = run(program)
    assert (done.returncode, done.stderr) == (130, "mpx: interrupted\n")
