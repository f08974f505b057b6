"""`mpx probe --mode active`: bursts to a server that throws them away, ours or a stock one's null device."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from grids import as_user, shared_grid
from interop.stock_server import StockServer
from mpx_command import command, mpx, refused, running
from raw_client import RawClient
from sites import opened

from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.wire import parse_features
from mpx.serve import Server

pytestmark = pytest.mark.peers
SCHEMA = json.loads(files("mpx").joinpath("probe.schema.json").read_text())
FLOOR_BPS = 1e6  # loopback carries thousands of times as much


def probed(*words: object) -> dict[str, Any]:
    ended = mpx("probe", "--mode", "active", "--json", *words)
    assert (ended.code, ended.err) == (0, "mpx: probing for 5 s, as bursts have whole periods\n"), ended
    told: dict[str, Any] = json.loads(ended.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(told)
    return told


def assert_bursts(told: dict[str, Any]) -> None:
    """Data flowed while it should, CUBIC and BBR, and none in the quiet second."""
    assert (told["mode"], told["profile"], told["error"]) == ("active", "short", None)

    def most(from_s: float, until_s: float) -> float:
        return max(float(one["bps"]) for one in told["goodput"] if from_s < one["t_s"] < until_s)

    assert min(most(0.5, 1.9), most(2.5, 3.9)) > FLOOR_BPS
    assert most(4.5, 5.0) == 0
    assert told["bottleneck"]["rate_bps"] > FLOOR_BPS


def test_of_a_server_of_ours_nothing_is_stored(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        told = probed("--window", "1s", f"127.0.0.1:{server.port}")
    assert_bursts(told)
    assert 45 <= told["sent"] + told["not_sent"] <= 50  # the window is one whole period
    assert told["way"]["kind"] == "echo"
    assert list(tmp_path.iterdir()) == []


def test_of_a_server_of_ours_inside_tls(tmp_path: Path) -> None:
    with opened("mpx serve with a token", tmp_path) as far:
        told = probed("--window", "1s", far.url)
    assert_bursts(told)
    assert told["way"]["kind"] == "echo"
    assert list(far.folder.iterdir()) == []


def test_of_a_stock_server_the_null_device_takes_it(tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    with StockServer(served) as server:
        told = probed("--window", "1s", f"ftp://127.0.0.1:{server.port}/dev/null")
        refused(mpx("probe", "--mode", "active", server.url), 2, "mpx serve", "/dev/null")
    assert_bursts(told)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("is_there", [True, False])
def test_what_only_has_the_name_of_the_null_device_is_not_written_to(
    vsftpd: tuple[str, Path], *, is_there: bool
) -> None:
    url, pub = vsftpd
    device = pub.parent / "dev"
    device.mkdir()
    device.chmod(0o777)
    if is_there:
        (device / "null").write_text("kept")
        (device / "null").chmod(0o666)
    server = url.removesuffix("/pub")
    refused(mpx("probe", "--mode", "active", f"{server}/dev/null"), 2, "is not the null device")
    assert [file.read_text() for file in device.iterdir()] == (["kept"] if is_there else [])


def test_interrupted_it_stops_sending_and_tells_what_is_known(
    tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with Server(tmp_path) as server:
        words = ("--window", "1h", "--json", f"127.0.0.1:{server.port}")
        with running("probe", "--mode", "active", *words) as process:
            # Beside the main thread two that send by turns, and one that counts.
            eventually(lambda: len(list(Path(f"/proc/{process.pid}/task").iterdir())) >= 4)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=240)
    told = json.loads(out)
    assert (process.returncode, told["status"], told["mode"]) == (130, "interrupted", "active")
    assert told["mix"] is None and told["mix_trouble"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--mode", "often"], "--mode"),
        (["--profile", "paper"], "--mode active"),
        (["--mode", "active", "--sampling", "paper"], "--sampling"),
        (["--mode", "active", "--profile", "long"], "--profile"),
        (["--policy", "rude"], "--policy"),
    ],
)
def test_what_does_not_fit_together(words: list[str], named: str) -> None:
    refused(mpx("probe", *words, "127.0.0.1:9"), 2, named)


def test_a_login_is_never_sent_in_the_clear_for_a_scheme_that_means_security(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        url = f"gsiftp://alice@127.0.0.1:{server.port}/"
        with as_user(shared_grid()):
            ended = mpx("probe", "--mode", "active", url, environment={"MPX_PASSWORD": "secret"})
    refused(ended, 5, "does not speak GSI")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give up a capability")
def test_where_one_congestion_control_is_locked_the_path_is_told_and_not_who_shares_it(
    tmp_path: Path,
) -> None:
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    missing = next((name for name in ("bbr", "cubic") if name not in allowed), None)
    if missing is None:
        pytest.skip("cubic and bbr are permitted to all users of this host")
    with Server(tmp_path) as server:
        words = ["probe", "--mode", "active", "--json", f"127.0.0.1:{server.port}", "--window", "1s"]
        without = ["setpriv", "--bounding-set=-net_admin", *command(*words)]
        told = json.loads(subprocess.run(without, capture_output=True, check=True, timeout=60).stdout)
    assert_bursts(told)
    assert told["mix"] is None and missing in told["mix_trouble"] and "sysctl" in told["mix_trouble"]


def test_where_nobody_takes_data(tmp_path: Path) -> None:
    refused(mpx("probe", "--mode", "active", "127.0.0.1:9"), 6)


@pytest.mark.parametrize("scheme", ["http", "https", "dav", "davs", "s3"])
def test_a_web_server_is_not_asked_to_throw_data_away(scheme: str) -> None:
    """Which is known from its URL: nobody is connected to, and nothing is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        place = "s3://bucket" if scheme == "s3" else f"{scheme}://{host}/"
        there = ["--endpoint-url", f"http://{host}"] if scheme == "s3" else []
        refused(mpx("probe", "--mode", "active", place, *there), 2, "mpx serve", "Leave --mode out")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_sink_is_announced_and_takes_streams_only(tmp_path: Path) -> None:
    with Server(tmp_path) as server, RawClient(server.port) as client:
        assert sink.FEATURE in parse_features(client.do("FEAT"))
        assert client.do(sink.VERB).code == 425
        assert client.do("MODE E").code == 200
        assert client.do(sink.VERB).code == 504
    with Server(tmp_path) as server, RawClient(server.port, login=False) as client:
        assert client.do(sink.VERB).code == 530


def test_a_sink_forgets_where_a_transfer_was_to_go_on(tmp_path: Path) -> None:
    with Server(tmp_path, writable=True) as server, RawClient(server.port) as client:
        assert client.do("REST 100").code == 350
        assert client.store(sink.VERB, b"thrown away").code == 226
        assert client.store("STOR file", b"kept").code == 226
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"kept")]
