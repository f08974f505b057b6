"""A command that ends with its parent."""

import os
import select
import subprocess
import sys

import pytest

PARENT = """
import os, subprocess, sys
with_parent = [sys.executable, "-P", "-m", "mpx_lab.traffic.with_parent", str(os.getpid())]
child = subprocess.Popen([*with_parent, "sh", "-c", "echo started; exec sleep 600"])
print(child.pid, flush=True)
child.wait()
"""


def test_it_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert parent.stdout.readline() == "started\n"
            parent.kill()
            assert select.select([child], [], [], 30)[0]  # readable once it has ended
        finally:
            parent.kill()
            os.close(child)


@pytest.mark.parametrize(
    ("parent", "command", "said"),
    [(1, "true", "its parent has ended"), (None, "/nowhere/it", "cannot run /nowhere/it: No such file")],
)
def test_what_cannot_be_run(parent: int | None, command: str, said: str) -> None:
    words = [str(parent or os.getpid()), command]
    module = [sys.executable, "-P", "-m", "mpx_lab.traffic.with_parent", *words]
    ran = subprocess.run(module, capture_output=True, text=True, check=False)
    assert (ran.returncode, said in ran.stderr) == (1, True)
