"""`mpx probe` as a process and as a library: of mpx serve, of a stock server, and of other ports."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from interop.stock_server import StockServer
from mpx_command import copied, mpx, refused, running
from sites import Site, opened

import mpx as api

pytestmark = pytest.mark.peers
SCHEMA = json.loads(files("mpx").joinpath("probe.schema.json").read_text())
WAYS = {
    "mpx serve": "echo of mpx serve (UDP port ",
    "stock server": "idle GridFTP session (NOOP at TCP port ",
}


def probed(*words: object) -> dict[str, Any]:
    """Probe with --json, and return what fits the schema."""
    ended = mpx("probe", "--json", *words)
    copied(ended)
    return read(ended.out)


def read(out: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(out)
    jsonschema.Draft202012Validator(SCHEMA).validate(told)
    return told


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port where nobody listens, and nobody else will."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.mark.parametrize("site", WAYS)
def test_what_is_printed(site: str, tmp_path: Path) -> None:
    with opened(site, tmp_path) as far:
        ended = mpx("probe", "--window", "500ms", far.url)
    copied(ended)
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in ended.out.splitlines())
    assert list(lines) == [
        "target", "way", "noise", "time", "probes", "loss", "RTT", "jitter", "mix", "decision",
    ]  # fmt: skip
    assert lines["target"].startswith(f"{far.url} at 127.0.0.1:")
    assert lines["way"].startswith(WAYS[site])
    assert re.fullmatch(r"(at least )?\S+ (us|ms) \(.*\)", lines["noise"])
    assert lines["probes"] == "5 sent, 0 lost"
    assert lines["loss"] == "0.00%"
    assert re.fullmatch(r"min \S+ ms, median \S+ ms, P99 \S+ ms", lines["RTT"])
    assert lines["mix"] == lines["decision"] == "no model"


def test_json(far: Site) -> None:
    told = probed("--window", "1s", far.url)
    assert (told["sent"], told["lost"], told["error"]) == (10, 0, None)
    assert (told["mix"], told["decision"], told["mode"]) == (None, None, "passive")
    assert [sample["t_s"] for sample in told["series"]] == pytest.approx(
        [i / 10 for i in range(10)], abs=0.05
    )
    rtts = [sample["rtt_s"] for sample in told["series"]]
    assert min(rtts) == told["rtt"]["min_s"] <= told["rtt"]["median_s"] <= told["rtt"]["p99_s"] == max(rtts)
    assert 0 < told["way"]["noise_s"] + told["rtt"]["min_s"] < 1


def test_the_sampling_of_the_paper(far: Site) -> None:
    told = probed("--window", "2s", "--sampling", "paper", far.url)
    assert (told["sent"], told["lost"], len(told["series"])) == (20, 0, 2)


def test_a_stock_server_that_wants_a_certificate_answers_too(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with StockServer(tmp_path / "served", arguments=("-no-allow-anonymous",)) as server:
        told = probed("--window", "300ms", server.url.replace("ftp://", "gsiftp://"))
    assert told["way"]["name"].startswith("idle GridFTP session")


def test_a_port_where_nobody_listens(closed_port: int) -> None:
    told = probed("--window", "300ms", f"127.0.0.1:{closed_port}")
    assert told["way"]["name"] == f"TCP handshake (port {closed_port})"
    assert (told["sent"], told["lost"]) == (3, 0)


def test_a_port_where_nobody_greets() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        port = silent.getsockname()[1]
        told = probed("--window", "300ms", f"ftp://127.0.0.1:{port}/")
    assert told["way"]["name"] == f"TCP handshake (port {port})"
    assert "sent no greeting" in told["way"]["reason"]


def test_names_and_families(far: Site) -> None:
    port = far.url.split(":")[2].split("/")[0]
    assert probed("--window", "100ms", "-4", f"localhost:{port}")["address"]["host"] == "127.0.0.1"
    refused(mpx("probe", "-6", f"127.0.0.1:{port}"), 2, "IPv4")
    refused(mpx("probe", "-4", "-6", f"127.0.0.1:{port}"), 2, "-4 and -6")


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["no-such-host.invalid"], 6, "no-such-host.invalid"),
        (["255.255.255.255:9"], 6, "cannot reach"),
        (["https://example.org/"], 2, "HOST:PORT"),
        (["--window", "10", "127.0.0.1"], 2, "unit"),
        (["--window", "0s", "127.0.0.1"], 2, "--window"),
        (["--sampling", "often", "127.0.0.1"], 2, "--sampling"),
        (["--plot", "rtt.txt", "127.0.0.1"], 2, ".png"),
        (["--plot", "/no/such/folder/rtt.png", "127.0.0.1"], 2, "/no/such/folder"),
        ([], 2, "TARGET"),
    ],
)
def test_failures(words: list[str], code: int, named: str) -> None:
    ended = mpx("probe", *words)
    refused(ended, code, named)
    assert ended.out == ""


class Counting:
    """A server that counts the commands it is sent; `hangs_up_after` so many it closes the session."""

    def __init__(self, hangs_up_after: int = 1_000_000) -> None:
        self.commands = 0
        self._hangs_up_after = hangs_up_after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> "Counting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):  # some are handshakes and nothing else
                client.sendall(b"220 ready\r\n")
                while self.commands < self._hangs_up_after and (data := client.recv(1000)):
                    client.sendall(b"200 ok\r\n" * data.count(b"\n"))
                    self.commands += data.count(b"\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("as_json", [True, False])
def test_interrupted_it_tells_what_is_known(
    number: int, code: int, as_json: bool, eventually: Callable[..., None]
) -> None:
    words = ["--json"] if as_json else []
    with Counting() as server, running("probe", "--window", "1h", *words, server.target) as process:
        eventually(lambda: server.commands > 10)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err == b"mpx: interrupted; the figures are those until then\n"
    if as_json:
        told = read(out.decode())
        assert told["error"] == "interrupted; the figures are those until then"
        assert told["duration_s"] < 3600
        assert (told["sent"] > 3, told["lost"]) == (True, 0)
    else:
        assert b"RTT       min " in out


def test_interrupted_before_there_is_anything_to_tell() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        with running("probe", f"127.0.0.1:{silent.getsockname()[1]}") as process:
            accepted = [silent.accept()[0] for _ in range(4)]  # three handshakes, and the session
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            for one in accepted:
                one.close()
    assert (process.returncode, out) == (130, b"")
    assert err == b"mpx: interrupted before the first probe\n"


def test_a_server_that_goes_away() -> None:
    with Counting(hangs_up_after=12) as server:
        ended = mpx("probe", "--window", "1h", server.target)
    refused(ended, 6, "closed the session")
    assert "sent, 0 lost" in ended.out


def test_a_picture(far: Site, here: Path) -> None:
    ended = mpx("probe", "--window", "300ms", "--plot", here / "rtt.svg", far.url)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("target")
    assert "<svg" in (here / "rtt.svg").read_text()


def test_without_matplotlib_the_extra_is_named(far: Site, here: Path) -> None:
    (here / "matplotlib.py").write_text("raise ImportError('No module named matplotlib')\n")
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ended = mpx("probe", "--plot", here / "rtt.svg", far.url, environment={"PYTHONPATH": path})
    refused(ended, 2, "mpx-dtn[plot]", "matplotlib")


def test_nothing_heavy_is_imported_without_need() -> None:
    program = (
        "import sys, mpx.probe_command\n"
        "assert not {'matplotlib', 'numpy', 'mpx.serve'} & set(sys.modules), 'heavy'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- from Python -----------------------------------------------------------------------------------


def test_the_python_api(far: Site, capfd: pytest.CaptureFixture[str]) -> None:
    result: api.ProbeResult = api.probe(far.url, window_s=0.3)
    assert (result.summary.sent, result.summary.lost, result.error) == (3, 0, None)
    assert result.as_dict()["target"] == far.url
    assert capfd.readouterr() == ("", "")


def test_the_python_api_is_cancelled(eventually: Callable[..., None]) -> None:
    cancel = threading.Event()
    failures: list[api.MpxError] = []

    def probe(target: str) -> None:
        try:
            api.probe(target, window_s=3600, cancel=cancel)
        except api.MpxError as error:
            failures.append(error)

    with Counting() as server:
        probing = threading.Thread(target=probe, args=(server.target,))
        probing.start()
        eventually(lambda: server.commands > 10)
        cancel.set()
        probing.join()
        probe(server.target)
    first, second = failures
    assert isinstance(first, api.Interrupted)
    assert isinstance(second, api.Interrupted)
    assert first.result is not None
    assert first.result.summary.sent > 3
    assert all(probe.rtt_s is not None for probe in first.result.probes)
    assert second.result is None
    assert second.report is None


def test_two_at_once_and_nothing_stays(far: Site, eventually: Callable[..., None]) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    results: list[api.ProbeResult] = []
    probing = [
        threading.Thread(target=lambda: results.append(api.probe(far.url, window_s=0.5))) for _ in range(4)
    ]
    for thread in probing:
        thread.start()
    for thread in probing:
        thread.join()
    assert [result.summary.lost for result in results] == [0] * 4
    eventually(lambda: threading.active_count() <= threads)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
