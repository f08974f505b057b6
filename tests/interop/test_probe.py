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
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import jsonschema
import pytest
from interop.stock_server import StockServer
from mpx_command import copied, mpx, refused, running
from sites import Site, opened

import mpx as api
from mpx.endpoints.ftp.extensions import echo
from mpx.endpoints.ftp.extensions.echo import EchoPlace

pytestmark = pytest.mark.peers
SCHEMA = json.loads(files("mpx").joinpath("probe.schema.json").read_text())
WAYS = {
    "mpx serve": "echo of mpx serve (UDP port ",
    "stock server": "idle GridFTP session (NOOP at TCP port ",
}
LOSS = {"mpx serve": "0.00%", "stock server": "not seen over TCP (retransmissions from here: 0)"}


def probed(*words: object) -> dict[str, Any]:
    """Probe with --json, and return what fits the schema."""
    ended = mpx("probe", "--json", *words)
    copied(ended)
    return read(ended.out)


def assert_all_answered(told: dict[str, Any], most: int) -> None:
    """Of those that were sent: where this host stands still some are not."""
    assert (told["lost"], told["error"]) == (0, None)
    assert 1 <= told["sent"] == most - told["not_sent"]


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
    names = ["target", "way", "noise", "time", "probes", "loss", "RTT", "jitter", "mix", "decision"]
    assert list(lines) == names
    assert lines["target"].startswith(f"{far.url} at 127.0.0.1:")
    assert lines["way"].startswith(WAYS[site])
    assert re.fullmatch(r"((about )?\S+ (us|ms)|not known) \(.*\)", lines["noise"])
    assert re.match(r"[1-5] sent, 0 (lost|without an answer)", lines["probes"])
    assert lines["loss"] == LOSS[site]
    assert re.fullmatch(r"min \S+ ms, median \S+ ms, P99 \S+ ms", lines["RTT"])
    assert lines["mix"].startswith("not known: ")  # in half a second
    assert lines["decision"].startswith("cubic (fair): the background is not known")


def test_json(far: Site) -> None:
    told = probed("--window", "1s", far.url)
    assert_all_answered(told, 10)
    assert (told["mode"], told["status"], told["exit_code"]) == ("passive", "done", 0)
    assert len(told["series"]) == told["sent"]
    times = [sample["t_s"] for sample in told["series"]]
    assert times == sorted(times)
    assert times[0] >= 0
    rtts = [sample["rtt_s"] for sample in told["series"]]
    assert min(rtts) == told["rtt"]["min_s"] <= told["rtt"]["median_s"] <= told["rtt"]["p99_s"] == max(rtts)
    assert told["rtt"]["min_s"] > 0


def test_the_sampling_of_the_paper(far: Site) -> None:
    told = probed("--window", "3s", "--sampling", "paper", far.url)
    assert_all_answered(told, 30)
    means = [sample["rtt_s"] for sample in told["series"]]
    assert 1 <= len(means) <= 3
    if told["not_sent"]:
        return
    steps = [abs(second - first) for first, second in pairwise(means)]
    assert told["jitter_s"] == pytest.approx(fmean(steps), abs=2e-6)  # all are rounded to 1 us


def test_a_stock_server_that_wants_a_certificate_answers_too(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with StockServer(tmp_path / "served", arguments=("-no-allow-anonymous",)) as server:
        told = probed("--window", "300ms", server.url.replace("ftp://", "gsiftp://"))
    assert told["way"]["kind"] == "session"


def test_a_port_where_nobody_listens(closed_port: int) -> None:
    told = probed("--window", "300ms", f"127.0.0.1:{closed_port}")
    assert told["way"]["name"] == f"TCP handshake (port {closed_port})"
    assert_all_answered(told, 3)


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
    """A server that counts what it is asked over the session, or over an echo if it has one.

    After `hangs_up_after` questions it closes the session; an echo that falls silent answers only what is
    asked before the window begins.
    """

    def __init__(
        self, *, has_echo: bool = False, hangs_up_after: int = 1 << 30, falls_silent: bool = False
    ) -> None:
        self.asked = 0
        self._hangs_up_after = hangs_up_after
        self._falls_silent = falls_silent
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._features = b"211 none\r\n"
        self._threads = [threading.Thread(target=self._accept)]
        self._echo = socket.socket(type=socket.SOCK_DGRAM)
        self._client: socket.socket | None = None
        if has_echo:
            self._echo.bind(("127.0.0.1", 0))
            place = EchoPlace(self._echo.getsockname()[1], b"8 bytes.")
            self._features = f"211-\r\n {place.feature}\r\n211 End\r\n".encode()
            self._threads.append(threading.Thread(target=self._send_back))

    def __enter__(self) -> "Counting":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, self._echo):
            with contextlib.suppress(
                OSError
            ):  # of the echo, which is not connected: it wakes up all the same
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self._echo.close()

    def _count(self) -> None:
        self.asked += 1
        if self.asked >= self._hangs_up_after and self._client:
            with contextlib.suppress(OSError):  # it has hung up before
                self._client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                self._client, _ = self._listener.accept()
            except OSError:
                return
            with self._client as client, contextlib.suppress(OSError):  # some are only handshakes
                client.sendall(b"220 ready\r\n")
                while data := client.recv(1000):
                    for line in data.splitlines():
                        if line == b"FEAT":
                            client.sendall(self._features)
                            continue
                        self._count()
                        client.sendall(b"200 ok\r\n")

    def _send_back(self) -> None:
        while True:
            data, sender = self._echo.recvfrom(100)
            if not data:
                return
            self._count()
            is_of_the_window = int.from_bytes(data[16:24], "big") < 1 << 32
            if not (self._falls_silent and is_of_the_window):
                self._echo.sendto(echo.answer(data, 0.0), sender)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("has_echo", [True, False])
def test_interrupted_it_tells_what_is_known(
    number: int, code: int, as_json: bool, has_echo: bool, eventually: Callable[..., None]
) -> None:
    words = ["--json"] if as_json else []
    server = Counting(has_echo=has_echo)
    with server, running("probe", "--window", "1h", *words, server.target) as process:
        eventually(lambda: server.asked > 10)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err == b"mpx: interrupted; the figures are those until then\n"
    if as_json:
        told = read(out.decode())
        assert told["error"] == "interrupted; the figures are those until then"
        assert (told["status"], told["exit_code"]) == ("interrupted", code)
        assert told["duration_s"] < 3600
        assert (told["sent"] > 3, told["lost"]) == (True, 0)
        assert told["way"]["kind"] == ("echo" if has_echo else "session")
    else:
        assert b"RTT       min " in out


def test_interrupted_between_handshakes(eventually: Callable[..., None]) -> None:
    shaken: list[int] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                with client, contextlib.suppress(OSError):
                    client.sendall(b"SSH-2.0-x\r\n")
                shaken.append(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept)
        accepting.start()
        with running(
            "probe", "--json", "--window", "1h", f"127.0.0.1:{listening.getsockname()[1]}"
        ) as process:
            eventually(lambda: len(shaken) > 10)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=30)
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join()
    told = read(out.decode())
    assert (process.returncode, told["way"]["kind"], told["lost"]) == (130, "handshake", 0)
    assert told["sent"] > 3


def test_interrupted_it_draws_what_is_known(here: Path, eventually: Callable[..., None]) -> None:
    words = ["--window", "1h", "--plot", here / "rtt.svg"]
    with Counting() as server, running("probe", *words, server.target) as process:
        eventually(lambda: server.asked > 10)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert "<svg" in (here / "rtt.svg").read_text()


def test_what_cannot_be_drawn_any_more_does_not_change_how_it_ended(
    here: Path, eventually: Callable[..., None]
) -> None:
    folder = here / "goes"
    folder.mkdir()
    words = ["--window", "1h", "--plot", folder / "rtt.svg"]
    with Counting() as server, running("probe", *words, server.target) as process:
        eventually(lambda: server.asked > 10)
        folder.rmdir()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"cannot write" in err
    assert err.endswith(b"interrupted; the figures are those until then\n")


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


def test_interrupted_while_a_port_is_silent(eventually: Callable[..., None]) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)  # the kernel leaves what it has no room for unanswered
        port = deaf.getsockname()[1]
        filling = socket.create_connection(("127.0.0.1", port))
        with filling, running("probe", f"127.0.0.1:{port}") as process:
            eventually(lambda: is_opening(port))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err == b"mpx: interrupted before the first probe\n"


def is_opening(port: int) -> bool:
    """Whether somebody of this host waits for an answer from that port (state 02: SYN sent)."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


@pytest.mark.parametrize(
    ("has_echo", "words"), [(False, "closed the session"), (True, "closed the connection")]
)
def test_a_server_that_goes_away(has_echo: bool, words: str) -> None:
    """What was under way then is not lost: nobody knows."""
    with Counting(has_echo=has_echo, hangs_up_after=12) as server:
        ended = mpx("probe", "--json", "--window", "1h", server.target)
    refused(ended, 6, words)
    told = read(ended.out)
    assert (told["status"], told["exit_code"], told["lost"]) == ("failed", 6, 0)
    assert words in told["error"]
    assert told["sent"] > 3


def test_a_server_that_falls_silent() -> None:
    """The probes of the choice are answered, and those of the run are not."""
    with Counting(has_echo=True, falls_silent=True) as server:
        ended = mpx("probe", "--json", "--window", "300ms", server.target)
    refused(ended, 6, "answered none of", "no answer", "another port")
    told = read(ended.out)
    assert (told["status"], told["exit_code"], told["loss"]) == ("failed", 6, 1.0)
    assert (told["lost"], told["rtt"]["min_s"]) == (told["sent"], None)
    assert "answered none of" in told["error"]


def test_what_was_measured_is_told_though_the_noise_is_not_to_be_had(tmp_path: Path) -> None:
    """Here as there is no descriptor left for it."""
    program = (
        "import json, os, resource, sys, mpx\n"
        "from mpx.probing import api\n"
        "room = len(os.listdir('/proc/self/fd')) - 1 + 3\n"  # without that of the listing itself
        "resource.setrlimit(resource.RLIMIT_NOFILE, (room, room))\n"
        "print(json.dumps(mpx.probe(sys.argv[1], window_s=0.3).as_dict()))\n"
    )
    with opened("mpx serve", tmp_path) as far:
        words = [sys.executable, "-c", program, far.url]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    told = read(done.stdout)
    assert (told["way"]["kind"], told["way"]["noise_s"], told["lost"]) == ("echo", None, 0)
    assert "Too many open files" in told["way"]["noise_how"]


def test_a_picture(far: Site, here: Path) -> None:
    ended = mpx("probe", "--window", "300ms", "--plot", here / "rtt.svg", far.url)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("target")
    assert "<svg" in (here / "rtt.svg").read_text()


def test_without_matplotlib_the_extra_is_named(far: Site, here: Path) -> None:
    (here / "matplotlib.py").write_text("raise ImportError('No module named matplotlib')\n")
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ended = mpx("probe", "--plot", here / "rtt.svg", far.url, environment={"PYTHONPATH": path})
    refused(ended, 2, ".[plot]", "matplotlib")


def test_nothing_heavy_is_imported_without_need() -> None:
    program = (
        "import sys, mpx.commands.probe\n"
        "assert not {'matplotlib', 'numpy', 'mpx.serve'} & set(sys.modules), 'heavy'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- from Python -----------------------------------------------------------------------------------


def test_the_python_api(far: Site, capfd: pytest.CaptureFixture[str]) -> None:
    result: api.ProbeResult = api.probe(far.url, window_s=0.3)
    assert (result.summary.lost, result.error, result.status) == (0, None, "done")
    assert 1 <= result.summary.sent <= 3
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
        eventually(lambda: server.asked > 10)
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
