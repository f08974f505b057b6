"""What is written after `mpx lab`."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from mpx_lab.lab_command import invoking_user, parse_changes, parse_share
from mpx_lab.sigterm import sigterm_ends
from mpx_lab.state import check_id
from mpx_lab.status_text import status_lines

from mpx.errors import MpxError, Terminated, UsageError


def test_changes_of_a_link() -> None:
    assert parse_changes("130Mbit/s", "22.5ms", "512000", "0.01%") == {
        "rate_bps": 130_000_000,
        "delay_s": 0.0225,
        "queue_bytes": 512_000,
        "loss": pytest.approx(0.0001),
    }
    assert parse_changes(queue="100p") == {"queue_packets": 100}
    assert parse_changes(queue="1MiB") == {"queue_bytes": 1 << 20}
    assert parse_changes("unlimited", queue="unlimited") == {
        "rate_bps": None,
        "queue_bytes": None,
        "queue_packets": None,
    }
    assert parse_changes() == {}


@pytest.mark.parametrize(
    "wrong",
    [{"rate": "130"}, {"delay": "5"}, {"queue": "p"}, {"queue": "-1p"}, {"loss": "2"}, {"loss": "x%"}],
)
def test_changes_that_are_not_understood(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="for example"):
        parse_changes(**wrong)


@pytest.mark.parametrize(("text", "share"), [("0", 0), ("0%", 0), ("1%", 0.01), ("100%", 1), ("0.01%", 1e-4)])
def test_shares(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "nan%", "-1%", "101%", "inf%", "0.01", "1"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(UsageError, match="share"):
        parse_share(text)


@pytest.mark.parametrize(
    ("environment", "user"),
    [
        ({"SUDO_UID": "1000", "SUDO_GID": "100"}, (1000, 100)),
        ({"SUDO_UID": "0", "SUDO_GID": "0"}, (0, 0)),
        ({"PKEXEC_UID": "987654"}, (987654, 987654)),
        ({}, (-1, -1)),
        ({"SUDO_UID": "root"}, (-1, -1)),
    ],
)
def test_who_called(environment: dict[str, str], user: tuple[int, int]) -> None:
    assert invoking_user(environment) == user


@pytest.mark.parametrize("wrong", ["", "A", "a.b", "a/b", "-a", "a" * 17, "..", "a\n"])
def test_an_id_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="not the ID of a lab"):
        check_id(wrong)


def test_the_help_of_mpx_does_not_load_the_lab() -> None:
    code = (
        "import sys; from mpx.cli import cli; cli.main(['--help'], standalone_mode=False); "
        "sys.exit(any(name.startswith('mpx_lab') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lab " in done.stdout


@pytest.mark.parametrize("arguments", [["up", "path"], ["status"], ["down"], ["exec", "src", "--", "true"]])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give it up")
def test_without_root_it_says_so(arguments: list[str]) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; import mpx_lab.lab_command; from mpx.cli import main; os.setuid(65534); main()",
            "lab",
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "needs root" in done.stderr


def test_sigterm_is_nobodys_fault_and_comes_once() -> None:
    """It may come while a part of a lab is asked, whose faults are expected, and again later."""
    cleaned = False
    with pytest.raises(Terminated, match="removed"), sigterm_ends():
        try:
            try:
                signal.raise_signal(signal.SIGTERM)
            except (MpxError, OSError):
                pytest.fail("taken for a fault")
        except BaseException:
            signal.raise_signal(signal.SIGTERM)
            cleaned = True
            raise
    assert cleaned and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def told(**more: Any) -> dict[str, Any]:
    way = {"rate_bps": None, "delay_s": 0.0, "queue_bytes": None, "queue_packets": None, "loss": 0.0}
    link = {"name": "wan", "ends": ["a", "b"], "up": True, "hindrances": [], "back": None, **way}
    return {
        "lab": "mine",
        "name": "path",
        "scale": 1.0,
        "hosts": [{"name": "a", "addresses": ["10.0.0.1", "fd00::1"]}],
        "links": [{**link, **more}],
        "routes": [],
        "controller": None,
        "capacities": None,
        "connected": None,
    }


def test_what_status_says() -> None:
    assert list(status_lines(told(), "")) == [
        "lab mine: path",
        "  host a               10.0.0.1 fd00::1",
        "  link wan             a - b: unlimited, 0 us one way, queue unlimited",
    ]
    way = {
        "rate_bps": 10_000_000,
        "delay_s": 0.03,
        "queue_bytes": 151_400,
        "queue_packets": 100,
        "loss": 0.001,
    }
    (line,) = [line for line in status_lines(told(**way, up=False), "") if "link" in line]
    assert line.endswith("10 Mbit/s, 30 ms one way, queue 100 packets, loss 0.1%, DOWN")
    routes = [{"host": "a", "to": "b", "congestion": "bbr", "window_bytes": 65535}]
    routes += [{"host": "a", "to": None, "congestion": "reno", "window_bytes": None}]
    assert list(status_lines({**told(), "routes": routes}, ""))[3:] == [
        "  route a to b: bbr, window 65535 bytes",
        "  route a to all: reno",
    ]
    apart = {**told(), "scale": 0.5, "connected": {"s1": True, "s2": False}}
    lines = list(status_lines(apart, "refused"))
    assert lines[0] == "lab mine: path, rates times 0.5 when it was built"
    assert lines[-1] == "  NOT connected to the controller: s2; refused"
    asked = {"openflow": "tcp:127.0.0.1:6653", "rest": "http://a", "xmlrpc": None}
    lines = list(status_lines({**told(), "controller": asked}, ""))
    assert lines[-1] == "  controller: REST http://a, XML-RPC unknown"
