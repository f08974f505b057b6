"""`mpx lab exec` becomes the command, and the other subcommands as users meet them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_command import command, mpx
from mpx_lab.lab import Lab
from mpx_lab.shape import Direction
from mpx_lab.topologies import TOPOLOGIES, named
from traces import traces

Eventually = Callable[..., None]
NOBODY = {"SUDO_UID": "65534", "SUDO_GID": "65534"}


@pytest.fixture(scope="module")
def running(lab_root: None) -> Iterator[str]:
    """The ID of one lab for all tests here."""
    with Lab.up(named("path"), f"t{os.getpid()}-exec") as lab:
        yield lab.id


def test_the_exit_code_and_the_streams_are_the_commands_own(running: str) -> None:
    script = "read line; echo got $line; echo bad >&2; exit 7"
    ended = mpx("lab", "exec", "--lab", running, "src", "--", "sh", "-c", script, stdin=b"in\n")
    assert (ended.code, ended.out, ended.err) == (7, "got in\n", "bad\n")


def test_signals_reach_the_command_as_it_is_the_same_process(running: str) -> None:
    words = command("lab", "exec", "--lab", running, "src", "--", "sh", "-c", "echo $$; exec sleep 1000")
    heeding = ["env", "--default-signal=INT", *words]  # the tests may run in the background, which ignores it
    with subprocess.Popen(heeding, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT


def test_no_signal_is_ignored_that_the_caller_did_not_ignore(running: str) -> None:
    command = ["grep", "SigIgn", "/proc/self/status"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    inside = mpx("lab", "exec", "--lab", running, "src", "--", *command).out
    assert ignored(inside) == ignored(plain)


def ignored(line: str) -> int:
    """The set of a line of /proc, but for 32 and 33, which the C library ignores when it starts a process."""
    return int(line.split()[1], 16) & ~(0b11 << 31)


def test_names_of_hosts_are_known_inside_and_only_there(running: str) -> None:
    ended = mpx("lab", "exec", "--lab", running, "src", "--", "getent", "ahosts", "dst")
    assert {line.split()[0] for line in ended.out.splitlines()} == {"10.0.0.2", "fd00::2"}
    assert "10.0.0.2" not in Path("/etc/hosts").read_text()


def test_it_runs_as_the_user_who_called_unless_told_otherwise(running: str) -> None:
    words = ["lab", "exec", "--lab", running]
    script = "id -u; id -g; id -G; echo $USER $MPX_LAB"
    ended = mpx(*words, "src", "--", "sh", "-c", script, environment=NOBODY)
    assert ended.out == f"65534\n65534\n65534\nnobody {running}\n"
    with_groups = subprocess.run(
        command(*words, "src", "--", "id", "-G"),
        capture_output=True,
        env={**os.environ, **NOBODY},
        extra_groups=[4, 5],
        check=True,
    )
    assert with_groups.stdout == b"65534\n"
    assert mpx(*words, "--root", "src", "--", "id", "-u", environment=NOBODY).out == "0\n"
    assert mpx(*words, "src", "--", "id", "-u").out == "0\n"


def test_the_command_keeps_its_folder_and_its_options(running: str, tmp_path: Path) -> None:
    ended = mpx("lab", "exec", "--lab", running, "dst", "--", "pwd", "-P", folder=tmp_path)
    assert ended.out == f"{tmp_path.resolve()}\n"


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc/hosts", 126)])
def test_what_cannot_be_run_has_the_exit_codes_of_shells(running: str, program: str, code: int) -> None:
    ended = mpx("lab", "exec", "--lab", running, "src", "--", program)
    assert ended.code == code
    assert f"cannot run '{program}' on src" in ended.err
    assert Lab.attach(running).host("src").run([program], capture_output=True).returncode == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exec", "nobody", "--", "true"], "no host 'nobody'"),
        (["exec", "src", "--"], "no command"),
        (["exec", "src", "--lab", "other", "--", "true"], "'--lab' stands after the host"),
        (["exec", "src", "--root", "--", "id"], "'--root' stands after the host"),
        (["exec", "--rooot", "src", "--", "id"], "No such option"),
        (["link", "nowhere", "--down"], "no link 'nowhere'"),
        (["link", "wan"], "nothing to change"),
        (["link", "wan", "--down", "--up"], "either --down or --up"),
        (["link", "wan", "--queue", "10"], "one full frame"),
        (["route", "src", "--window", "much"], "not a size"),
        (["up", "nosuch"], "no topology 'nosuch'"),
        (["up", "path", "--scale", "0"], "scale"),
        (["up", "path", "--rest", "http://x"], "--controller"),
        (["up", "dumbbell", "--controller", "--rest", "http://x"], "somebody else runs"),
        (["up", "path", "--controller"], "path has no switches"),
        (["up", "nosuch.py"], "cannot read nosuch.py"),
    ],
)
def test_wrong_requests_say_so_and_change_nothing(running: str, words: list[str], message: str) -> None:
    before = Lab.attach(running).status()
    ended = mpx("lab", words[0], "--lab", running, *words[1:])
    assert ended.code == 2, ended
    assert message in ended.err
    assert Lab.attach(running).status() == before


def test_a_link_and_a_route_as_one_writes_them(running: str) -> None:
    words = ["--rate", "130Mbit/s", "--delay", "22.5ms", "--queue", "512000", "--loss", "0.01%"]
    assert mpx("lab", "link", "--lab", running, "wan", *words, "--down").code == 0
    told = json.loads(mpx("lab", "status", "--json", "--lab", running).out)
    assert told["name"] == "path"
    assert told["controller"] is None
    assert told["links"] == [
        {
            "name": "wan",
            "ends": ["src", "dst"],
            "rate_bps": 130000000,
            "delay_s": 0.0225,
            "queue_bytes": 512000,
            "queue_packets": None,
            "loss": 0.0001,
            "back": None,
            "up": False,
            "hindrances": [],
        }
    ]
    Lab.attach(running).link("wan").change(Direction.B_TO_A, rate_bps=None, queue_bytes=None, loss=0)
    assert (
        "src - dst: 130 Mbit/s, 22.5 ms one way, queue 500 KiB, loss 0.01%; "
        "back: unlimited, 22.5 ms one way, queue unlimited, DOWN\n"
    ) in mpx("lab", "status", "--lab", running).out
    assert mpx("lab", "link", "--lab", running, "wan", "--up").code == 0
    assert mpx("lab", "route", "--lab", running, "src", "--congestion", "bbr", "--window", "65535").code == 0
    routes = mpx("lab", "exec", "--lab", running, "src", "--", "ip", "route").out
    assert "window 65535 congctl bbr" in routes
    assert "route src to all: bbr, window 65535 bytes\n" in mpx("lab", "status", "--lab", running).out
    assert mpx("lab", "route", "--lab", running, "src").code == 0
    routes = mpx("lab", "exec", "--lab", running, "src", "--", "ip", "route").out
    assert "window" not in routes and "congctl cubic" in routes


def test_list_names_topologies_and_labs(running: str) -> None:
    told = mpx("lab", "list").out
    assert all(topology.text in told for topology in TOPOLOGIES)
    assert f"there is a lab now: {running}\n" in told
    assert mpx("lab", "list", "--lab", running).out.splitlines()[-1] == f"there is a lab now: {running}"
    nobody = mpx("lab", "list", "--lab", "nobody").out
    assert "there is no lab 'nobody'" in nobody and running not in nobody
    code = "import os, mpx_lab.lab_command; from mpx.cli import main; os.setuid(65534); main()"
    as_nobody = [sys.executable, "-c", code, "lab", "list"]
    ended = subprocess.run(as_nobody, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"there may be a lab '{running}'" in ended.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topology =", "SyntaxError"),
        ("raise OSError('oh')", "cannot read"),
        ("import nowhere", "ModuleNotFoundError"),
        ("from mpx_lab.topology import Link\nLink('a', 'a')", "at both ends"),
    ],
)
def test_a_topology_that_cannot_be_is_no_fault_of_the_lab(
    lab_id: str, tmp_path: Path, text: str, message: str
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(text)
    ended = mpx("lab", "up", mine, "--lab", lab_id)
    assert ended.code == 2
    assert str(mine) in ended.err and message in ended.err


def test_a_topology_of_ones_own(lab_id: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from mpx_lab.topology import Topology, wan\n"
        "topology = Topology('mine', ('a',), ('b',), (wan('a', 'b', rate_bps=50_000_000, rtt_s=0.020),))\n"
    )
    assert "lab " in mpx("lab", "up", mine, "--lab", lab_id, "--scale", "0.5").out
    assert "25 Mbit/s" in mpx("lab", "status", "--lab", lab_id).out
    assert mpx("lab", "down", "--lab", lab_id).code == 0


def test_without_a_word_it_shows_its_help() -> None:
    ended = mpx("lab")
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith("Usage: mpx lab [OPTIONS] [COMMAND]") and ended.err.count("\n") > 10


def test_a_queue_in_packets_is_told_in_packets(running: str) -> None:
    lab = Lab.attach(running)
    before = lab.link("wan").status().there
    lab.link("wan").change(queue_packets=100)
    try:
        assert ", queue 100 packets" in mpx("lab", "status", "--lab", running).out
    finally:
        lab.link("wan").change(queue_bytes=before.queue_bytes)


def test_sigterm_while_it_is_built_leaves_nothing(
    lab_id: str, tmp_path: Path, eventually: Eventually
) -> None:
    mine = tmp_path / "mine.py"  # its hosts cannot reach each other, so that it is never done
    mine.write_text(
        "from mpx_lab.topology import Topology, Link\n"
        "topology = Topology('mine', ('a',), ('b',), (Link('a', 'b', loss=1.0),))\n"
    )
    words = command("lab", "up", mine, "--lab", lab_id)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: any(f"mpxlab.{lab_id}.b" in name for name in os.listdir("/run/netns")))
        for _ in range(3):  # only the first counts: what is removed then is removed whole
            process.terminate()
        _, said = process.communicate(timeout=240)
    assert (process.returncode, said) == (143, "mpx: interrupted; the lab has been removed\n")
    assert traces(lab_id) == []
