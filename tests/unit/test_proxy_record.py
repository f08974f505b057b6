"""What the delaying proxy records, and its command."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mpx_lab.proxy import BUCKET_S, ConnectionRecord, Record, longest_gap_s
from unit.proxied import PATIENCE_S, accept, listen, read_line


def test_the_longest_gap_is_between_bytes_and_in_the_chosen_direction() -> None:
    record = Record(0, up={10: 1, 11: 1, 15: 1, 40: 1}, down={20: 9, 22: 9})
    assert longest_gap_s(record, "up") == pytest.approx(24 * BUCKET_S)
    assert longest_gap_s(record, "down") == pytest.approx(BUCKET_S)
    assert longest_gap_s(record) == pytest.approx(17 * BUCKET_S)
    assert longest_gap_s(Record(0)) == 0
    assert longest_gap_s(Record(0, up={3: 1})) == 0


def test_the_record_as_json() -> None:
    record = Record(12.5, {3: 7, 1: 5}, {}, [ConnectionRecord(0, "data", "client", 0.5, 1.0, "close", 12, 0)])
    assert json.loads(record.to_json()) == {
        "bucket_s": 0.005,
        "up_bytes": 12,
        "down_bytes": 0,
        "started_unix_s": 12.5,
        "up": [[1, 5], [3, 7]],
        "down": [],
        "connections": [
            {
                "number": 0,
                "kind": "data",
                "opened_by": "client",
                "opened_s": 0.5,
                "closed_s": 1.0,
                "ended_by": "close",
                "up_bytes": 12,
                "down_bytes": 0,
            }
        ],
    }


# Command


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_a_signal_and_writes_its_record(
    ending: signal.Signals, tmp_path: Path
) -> None:
    record = tmp_path / "record.json"
    with listen() as front:
        arguments = ["--to", f"127.0.0.1:{front.getsockname()[1]}", "--rtt", "2ms", "--rate", "800Mbit/s"]
        arguments += ["--total-rate", "1Gbit/s", "--window", "1MiB", "--record", str(record)]
        command = [sys.executable, "-m", "mpx_lab.proxy", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            ready = re.fullmatch(r"proxy ready: ftp://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
            assert ready
            with (
                socket.create_connection(("127.0.0.1", int(ready[1])), PATIENCE_S) as client,
                accept(front) as server,
            ):
                server.sendall(b"220 hello\r\n")
                assert read_line(client) == b"220 hello\r\n"
            process.send_signal(ending)
            assert process.wait(PATIENCE_S) == 0
    assert json.loads(record.read_text())["connections"][0]["down_bytes"] == len(b"220 hello\r\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--to", "nowhere"], "127.0.0.1:2811"), (["--to", "127.0.0.1:1", "--rtt", "30"], "30s or 250ms")],
)
def test_the_command_says_how_to_write_it(arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "mpx_lab.proxy", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert words in done.stderr
