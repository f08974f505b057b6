"""`mpx probe` that is interrupted, and servers that go away or fall silent meanwhile."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.counting_server import Counting
from interop.probed import read
from mpx_command import mpx, refused, running

_IPV4 = 0x0800  # ETH_P_IP


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("has_echo", [True, False])
def test_interrupted_it_tells_what_is_known(
    number: int, code: int, as_json: bool, has_echo: bool, eventually: Callable[..., None]
) -> None:
    words = ["--json"] if as_json else []
    server = Counting(has_echo=has_echo)
    with server, running("probe", "--window", "1h", *words, server.target, patient=True) as process:
        eventually(lambda: server.asked > 10)
        process.send_signal(number)
        out, err = process.communicate(timeout=240)
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


def test_interrupted_it_keeps_its_exit_code_where_nobody_reads(eventually: Callable[..., None]) -> None:
    server = Counting(has_echo=True)
    with server, running("probe", "--window", "1h", server.target, patient=True) as process:
        eventually(lambda: server.asked > 10)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"mpx: interrupted; the figures are those until then\n"
    assert process.returncode == 130


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to see handshakes, of which no program hears")
def test_interrupted_between_handshakes() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_IPV4)) as seen,
    ):
        listening.settimeout(30)
        seen.settimeout(30)
        port = listening.getsockname()[1]
        with running("probe", "--json", "--window", "1h", f"127.0.0.1:{port}", patient=True) as process:
            session, _ = listening.accept()
            with session:
                session.sendall(b"SSH-2.0-x\r\n")
            syns = 0
            while syns < 20:  # each leaves the loopback device, and arrives there
                syns += _is_syn(seen.recv(2000), port)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=240)
    told = read(out.decode())
    assert (process.returncode, told["way"]["kind"], told["lost"]) == (130, "handshake", 0)
    assert told["sent"] > 3


def _is_syn(packet: bytes, port: int) -> bool:
    """Tell whether a packet of IPv4 begins a connection to a port."""
    tcp = packet[4 * (packet[0] & 0xF) :]
    return packet[9] == socket.IPPROTO_TCP and tcp[2:4] == port.to_bytes(2) and tcp[13] & 0x12 == 0x02


def test_interrupted_it_draws_what_is_known(here: Path, eventually: Callable[..., None]) -> None:
    words = ["--window", "1h", "--plot", here / "rtt.svg"]
    with Counting() as server, running("probe", *words, server.target, patient=True) as process:
        eventually(lambda: server.asked > 10)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=240)
    assert process.returncode == 130
    assert "<svg" in (here / "rtt.svg").read_text()


def test_what_cannot_be_drawn_any_more_does_not_change_how_it_ended(
    here: Path, eventually: Callable[..., None]
) -> None:
    folder = here / "goes"
    folder.mkdir()
    words = ["--window", "1h", "--plot", folder / "rtt.svg"]
    with Counting() as server, running("probe", *words, server.target, patient=True) as process:
        eventually(lambda: server.asked > 10)
        folder.rmdir()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert b"cannot write" in err
    assert err.endswith(b"interrupted; the figures are those until then\n")


def test_interrupted_before_there_is_anything_to_tell() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        with running("probe", f"127.0.0.1:{silent.getsockname()[1]}") as process:
            session, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=240)
            session.close()
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
            _, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert err.startswith(b"mpx: interrupted")  # on a busy machine another way was found by then


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
