"""A lab that is killed between any two steps leaves nothing, and taking one down touches nothing else."""

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mpx_command import command, mpx
from mpx_lab import cleanup, fixtures, state
from mpx_lab.builder import Builder
from mpx_lab.lab import Lab
from mpx_lab.namespace import unmount
from mpx_lab.own_controller import OWN
from mpx_lab.plan import plan
from mpx_lab.state import LabError
from mpx_lab.steps import Controller, StartController
from mpx_lab.topologies import named
from traces import devices, processes_in, traces
from victims import ALL_KINDS, first_line, python

STEPS = len(plan(ALL_KINDS, "x"))
CONTROLLED = [type(step) for step in plan(ALL_KINDS, "x", OWN)]
BEFORE_IT = CONTROLLED.index(StartController)


@contextmanager
def building(lab_id: str, steps: int, controller: Controller | None = None) -> Iterator[int]:
    """A process that has done so many steps of `Lab.up`, and holds the lock; killed at the end."""
    done, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with state.locked(lab_id):
                Builder(lab_id).build(plan(ALL_KINDS, lab_id, controller)[:steps])
                os.write(tell, b"done")
                signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(done, "rb") as told:
        try:
            assert told.read(4) == b"done"
            yield pid
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_what_is_killed_after_any_step_of_up_is_removed_by_the_next_use(lab_id: str, steps: int) -> None:
    before = devices()
    with building(lab_id, steps):
        pass
    assert traces(lab_id)
    with pytest.raises(LabError, match="was interrupted"):
        Lab.attach(lab_id)
    assert not traces(lab_id)
    assert devices() == before


def once_it_runs() -> list[int]:
    """After the first and the last step of each kind that follow; above all, without one."""
    first, last = dict[type, int](), dict[type, int]()
    for number, kind in enumerate(CONTROLLED[BEFORE_IT:], BEFORE_IT + 1):
        first.setdefault(kind, number)
        last[kind] = number
    return sorted({*first.values(), *last.values()})


@pytest.mark.parametrize("steps", once_it_runs())
def test_what_is_killed_once_it_has_a_controller_is_removed_by_the_next_use(lab_id: str, steps: int) -> None:
    before = devices()
    with building(lab_id, steps, OWN):
        pass
    assert any("mpx" in line and "--insecure" in line for line in traces(lab_id))
    with pytest.raises(LabError, match="was interrupted"):
        Lab.attach(lab_id)
    assert not traces(lab_id)
    assert devices() == before


@pytest.mark.parametrize("words", [["status"], ["down"], ["up", "path"]])
def test_each_command_removes_it(lab_id: str, words: list[str]) -> None:
    with building(lab_id, STEPS - 1):
        pass
    ended = mpx("lab", *words, "--lab", lab_id)
    if words[0] == "status":
        assert ended.code == 1
        assert "was interrupted" in ended.err
    else:
        assert ended.code == 0
        assert "have been removed" in ended.out
    if words[0] == "up":
        assert mpx("lab", "status", "--lab", lab_id).code == 0
        assert mpx("lab", "down", "--lab", lab_id).code == 0
    assert not traces(lab_id)


def test_what_down_had_begun_is_ended_by_the_next_command(lab_id: str, lab_root: None) -> None:
    lab = Lab.up(ALL_KINDS, lab_id, keep=True)
    with lab.host("a").popen(["sleep", "1000"], start_new_session=True) as sleeper:
        (lab.folder / "state.json").unlink()  # the first that down does
        assert mpx("lab", "link", "direct", "--down", "--lab", lab_id).code == 1
        assert sleeper.wait() == -signal.SIGTERM
    lab.down()
    assert not traces(lab_id)


def test_list_says_how_each_lab_is_and_what_is_meant_is_removed(lab_id: str) -> None:
    with building(lab_id, 3):
        assert f"the lab '{lab_id}' is being built" in mpx("lab", "list").out
    remove = f"the lab '{lab_id}' was interrupted; remove its remains with 'mpx lab down --lab {lab_id}'"
    assert remove in mpx("lab", "list").out.splitlines()
    assert traces(lab_id)
    ended = mpx("lab", "list", "--lab", lab_id)
    assert (ended.code, ended.err) == (0, "")
    removed = f"the lab '{lab_id}' was interrupted; its remains have been removed"
    assert ended.out.splitlines()[-1] == removed
    assert not traces(lab_id)
    (state.LABS / f"{lab_id}.lock").touch()  # of one that was killed before it had made anything
    assert lab_id not in mpx("lab", "list").out
    assert not traces(lab_id)


def test_labs_of_killed_tests_go_when_others_begin(lab_id: str) -> None:
    code = """
import os
from mpx_lab.lab import Lab
from mpx_lab.topologies import named
print(Lab.up(named("path"), f"t{os.getpid()}-kills", keep=True).id, flush=True)
"""
    with python(code) as owner:
        left = first_line(owner)
        owner.wait()
    with Lab.up(named("path"), lab_id) as ours:
        assert traces(left)
        fixtures.take_down_abandoned()
        assert not traces(left)
        assert not ours.faults()


def test_the_lab_of_a_program_that_was_killed_is_removed(lab_id: str) -> None:
    code = """
import signal, sys
from mpx_lab import state
from mpx_lab.builder import Builder
from mpx_lab.lab import Lab
from mpx_lab.topologies import named
with Lab.up(named("path"), sys.argv[1]):
    print("up", flush=True)
    signal.pause()
"""
    with python(code, lab_id) as owner:
        assert first_line(owner) == "up"
        assert mpx("lab", "status", "--lab", lab_id).code == 0
    assert mpx("lab", "exec", "--lab", lab_id, "src", "--", "true").code == 1
    assert not traces(lab_id)


def test_processes_end_with_their_lab_however_they_came_there(lab_id: str, lab_root: None) -> None:
    lab = Lab.up(named("path"), lab_id, keep=True)
    stubborn = "trap '' TERM; echo; while :; do sleep 1000; done"
    ours = lab.host("src").popen(["sh", "-c", stubborn], stdout=subprocess.PIPE)
    theirs = subprocess.Popen(["ip", "netns", "exec", f"mpxlab.{lab_id}.src", "sleep", "1000"])
    assert ours.stdout is not None
    ours.stdout.read(1)
    assert theirs.poll() is None
    lab.down()
    assert ours.wait() == -signal.SIGKILL
    theirs.wait()
    ours.stdout.close()
    assert not traces(lab_id)


def test_down_touches_nothing_that_only_looks_like_it(lab_id: str, lab_root: None) -> None:
    near = f"{lab_id}x"
    stranger = f"mpxlab-{lab_id}"
    subprocess.run(["ip", "netns", "add", stranger], check=True)
    asleep = subprocess.Popen(
        ["ip", "netns", "exec", stranger, "sleep", "1000"], env={**os.environ, "MPX_LAB": f"{lab_id}y"}
    )
    try:
        with Lab.up(named("path"), near) as other:
            Lab.up(named("path"), lab_id, keep=True)
            kept = traces(near)
            Lab.attach(lab_id).down()
            assert not traces(lab_id)
            assert sorted(traces(near)) == sorted(kept)
            assert not other.faults()
            assert asleep.poll() is None
    finally:
        asleep.kill()
        asleep.wait()
        subprocess.run(["ip", "netns", "del", stranger], check=True)
    assert not traces(near)


def test_a_step_that_fails_leaves_nothing(
    lab_id: str, lab_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel has no such setting, so the second namespace cannot be finished.
    monkeypatch.setattr("mpx_lab.plan.SWITCH_SETTINGS", (("net/ipv4/no_such_setting", "1"),))
    with pytest.raises(Exception, match="no_such_setting"):
        Lab.up(named("dumbbell"), lab_id)
    assert not traces(lab_id)


def test_one_of_two_that_come_at_once_gets_the_lab(lab_id: str, lab_root: None) -> None:
    both = [
        subprocess.Popen(
            command("lab", "up", "path", "--lab", lab_id), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [one.communicate() for one in both]
    assert sorted(one.returncode for one in both) == [0, 1], said
    assert any(b"is up already" in errors for _, errors in said)
    assert mpx("lab", "status", "--lab", lab_id).code == 0
    assert mpx("lab", "down", "--lab", lab_id).code == 0
    assert not traces(lab_id)


def test_while_a_lab_is_being_built_others_are_told_so(lab_id: str) -> None:
    with building(lab_id, 3):
        ended = mpx("lab", "status", "--lab", lab_id)
        assert ended.code == 1
        assert "being built" in ended.err
        assert traces(lab_id)
    assert mpx("lab", "down", "--lab", lab_id).code == 0
    assert not traces(lab_id)


def test_a_lab_of_which_a_part_has_ended_is_called_broken_and_replaced(lab_id: str, lab_root: None) -> None:
    with Lab.up(ALL_KINDS, lab_id):
        for pid in processes_in(f"mpxlab.{lab_id}.switches"):
            os.kill(pid, signal.SIGKILL)
        (emulator, *_) = (line for line in traces(lab_id) if "direct" in line)
        os.kill(int(emulator.split()[1].rstrip(":")), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", f"mpxlab.{lab_id}.b"], check=True)
        ended = mpx("lab", "status", "--lab", lab_id)
        assert ended.code == 1
        for part in ("namespace of b does not exist", "link direct does not work", "switches have ended"):
            assert part in ended.err
        assert mpx("lab", "up", "path", "--lab", lab_id).code == 0
        assert mpx("lab", "exec", "--lab", lab_id, "src", "--", "true").code == 0
        assert mpx("lab", "down", "--lab", lab_id).code == 0
    assert not traces(lab_id)


def test_taking_down_what_is_not_there_is_no_fault(lab_id: str) -> None:
    ended = mpx("lab", "down", "--lab", lab_id)
    assert (ended.code, ended.out) == (0, f"there is no lab '{lab_id}'\n")
    ended = mpx("lab", "exec", "--lab", lab_id, "src", "--", "true")
    assert ended.code == 1
    assert "there is no lab" in ended.err
    assert not traces(lab_id)


def test_a_lab_whose_emulator_does_not_run_any_more_is_taken_down(lab_id: str, lab_root: None) -> None:
    lab = Lab.up(named("path"), lab_id)
    (emulator,) = (line for line in traces(lab_id) if "--control" in line)
    os.kill(int(emulator.split()[1].rstrip(":")), signal.SIGSTOP)
    lab.down()
    assert not traces(lab_id)


def test_a_lab_that_was_replaced_takes_down_only_itself(lab_id: str, lab_root: None) -> None:
    old = Lab.up(named("path"), lab_id)
    with Lab.attach(lab_id):
        pass
    with Lab.up(named("path"), lab_id) as new:
        old.down()
        assert not new.faults()
    assert not traces(lab_id)


def pids(lab_id: str) -> list[int]:
    """The processes with the mark of a lab."""
    return [int(line.split()[1].rstrip(":")) for line in traces(lab_id) if line.startswith("process ")]


def test_the_mark_in_a_process_of_another_user_is_not_believed(lab_id: str, lab_root: None) -> None:
    with subprocess.Popen(["sleep", "1000"], user=65534, env={"MPX_LAB": lab_id}) as theirs:
        try:
            Lab.up(named("path"), lab_id).down()
            assert theirs.poll() is None
            assert pids(lab_id) == [theirs.pid]
        finally:
            theirs.kill()


def test_who_enters_while_a_lab_is_taken_down_goes_with_it(
    lab_id: str, lab_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = []

    def enter_first(path: Path) -> None:
        late.append(
            subprocess.Popen(
                ["ip", "netns", "exec", path.name, "sh", "-c", "echo; exec sleep 1000"],
                stdout=subprocess.PIPE,
            )
        )
        assert late[-1].stdout is not None
        late[-1].stdout.read(1)
        unmount(path)

    lab = Lab.up(named("path"), lab_id)
    monkeypatch.setattr(cleanup, "unmount", enter_first)
    lab.down()
    for one in late:
        with one:
            assert one.wait(0) == -signal.SIGTERM
    assert len(late) == 2


def test_a_lab_keeps_nothing_of_who_made_it_busy_and_lets_nobody_else_drive_it(
    lab_id: str, lab_root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    try:
        lab = Lab.up(ALL_KINDS, lab_id, controller=Controller("127.0.0.1", 9))
    finally:
        os.umask(before)
    with lab:
        assert {Path(f"/proc/{pid}/cwd").readlink() for pid in pids(lab_id)} == {Path("/")}
        open_to_all = [path for path in lab.folder.rglob("*") if path.stat().st_mode & stat.S_IWOTH]
        assert all((lab.folder / "ovs") in path.parents for path in open_to_all)
        assert stat.S_IMODE((lab.folder / "ovs").stat().st_mode) == 0o700


def test_a_relay_that_ended_and_switches_that_stand_still_are_faults(
    lab_id: str, lab_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpx_lab.ovs.ANSWER_S", 0.5)
    with Lab.up(ALL_KINDS, lab_id, controller=Controller("127.0.0.1", 9)) as lab:
        assert not lab.faults()
        (relay,) = (line for line in traces(lab_id) if "relay.py" in line)
        os.kill(int(relay.split()[1].rstrip(":")), signal.SIGKILL)
        daemon = int((lab.folder / "ovs" / "ovs-vswitchd.pid").read_text())
        os.kill(daemon, signal.SIGSTOP)
        assert lab.faults() == ["the switches have ended", "the relay to the controller has ended"]
