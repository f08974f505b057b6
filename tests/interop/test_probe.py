"""`mpx probe` as a process: of mpx serve, of a stock server, and of other ports."""

import os
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from interop.probed import probed, read
from interop.stock_server import StockServer
from mpx_command import copied, mpx, refused
from sites import Site, opened
from small_model import write_small_estimator

pytestmark = pytest.mark.peers
WAYS = {
    "mpx serve": "echo of mpx serve (UDP port ",
    "stock server": "idle GridFTP session (NOOP at TCP port ",
}
LOSS = {"mpx serve": "0.00%", "stock server": "not seen over TCP (retransmissions from here: 0)"}


def assert_all_answered(told: dict[str, Any], most: int) -> None:
    """Of those that were sent: where this host stands still some are not."""
    assert (told["lost"], told["error"]) == (0, None)
    assert 1 <= told["sent"] == most - told["not_sent"]


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


def test_mpx_serve_inside_tls(tmp_path: Path) -> None:
    """By its echo for who has a token, else by handshakes."""
    with opened("mpx serve with a token", tmp_path) as far:
        told = probed("--window", "300ms", far.url)
        assert told["way"]["kind"] == "echo"
        assert_all_answered(told, 3)
        ended = mpx("probe", "--window", "300ms", far.url, environment={"MPX_TOKEN": ""})
    copied(ended)
    assert "TCP handshake" in ended.out and "mpx token save" in ended.out


def test_the_sampling_of_the_paper(far: Site) -> None:
    told = probed("--window", "3s", "--sampling", "paper", far.url)
    assert_all_answered(told, 30)
    means = [sample["rtt_s"] for sample in told["series"]]
    assert 1 <= len(means) <= 3
    if told["not_sent"]:
        return
    steps = [abs(second - first) for first, second in pairwise(means)]
    assert told["jitter_s"] == pytest.approx(fmean(steps), abs=2e-6)  # all are rounded to 1 us


def test_the_classifier_is_named(far: Site, tmp_path: Path) -> None:
    """As MPX_MODEL has it, whose model says itself which it is; without, by the sampling."""
    for sampling, name in (("single", "trees"), ("paper", "knn-dtw")):
        told = probed("--window", "200ms", "--sampling", sampling, far.url)
        assert told["classifier"] == {"name": name, "model": None}
    folder = write_small_estimator(tmp_path / "bayes")
    words = ("probe", "--json", "--window", "6s", "--sampling", "paper", far.url)
    ended = mpx(*words, environment={"MPX_MODEL": str(folder)})
    copied(ended)
    told = read(ended.out)
    assert told["classifier"] == {"name": "naive-bayes", "model": str(folder)}
    assert told["mix"] is not None and told["mix"]["class"] == "unknown"  # loopback is too short to tell


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
        (["gopher://example.org/"], 2, "HOST:PORT"),
        (["ssh://me@dtn.example.org/data"], 2, "write dtn.example.org:22"),
        (["ssh://dtn.example.org:2222/"], 2, "write dtn.example.org:2222"),
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


def test_a_picture(far: Site, here: Path) -> None:
    ended = mpx("probe", "--window", "300ms", "--plot", here / "rtt.svg", far.url)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("target")
    assert "<svg" in (here / "rtt.svg").read_text()


def with_modules_of(folder: Path) -> dict[str, str]:
    """An environment in which Python imports from this folder first."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


def test_without_matplotlib_the_extra_is_named_if_the_folder_is_there(here: Path) -> None:
    (here / "matplotlib.py").write_text("raise ImportError('No module named matplotlib')\n")
    environment = with_modules_of(here)
    for folder, named in ((here, (".[plot]", "matplotlib")), ("/no/such/folder", ("/no/such/folder",))):
        ended = mpx("probe", "--plot", f"{folder}/rtt.svg", "127.0.0.1:1", environment=environment)
        refused(ended, 2, *named)


def test_what_matplotlib_says_does_not_reach_the_user(closed_port: int, here: Path) -> None:
    (here / "matplotlib").mkdir()
    (here / "matplotlib" / "__init__.py").write_text(
        "import logging, warnings\n"
        "logging.getLogger(__name__).warning('building the font cache')\n"
        "warnings.warn('a backend')\n"
    )
    (here / "matplotlib" / "figure.py").write_text(
        "import warnings\n"
        "from unittest.mock import MagicMock\n"
        "class Figure(MagicMock):\n"
        "    def savefig(self, out, format):\n"
        "        warnings.warn('a glyph is missing')\n"
        "        out.write(b'drawn')\n"
    )
    words = ("probe", "--window", "100ms", "--plot", here / "rtt.svg", f"127.0.0.1:{closed_port}")
    copied(mpx(*words, environment=with_modules_of(here)))
    assert (here / "rtt.svg").read_bytes() == b"drawn"


def test_nothing_heavy_is_imported_without_need() -> None:
    program = (
        "import sys, mpx.commands.probe\n"
        "assert not {'matplotlib', 'numpy', 'mpx.serve'} & set(sys.modules), 'heavy'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
