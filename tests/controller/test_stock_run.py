"""Which connections are streams of a command, and how a command is run."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from free_ports import free_ports
from hypothesis import given
from hypothesis import strategies as st
from mpx_command import command, mpx, refused
from mpx_controller.stock import run as stock_run
from mpx_controller.stock.connections import Connection, Connections
from mpx_controller.stock.netmgr.mpx_netmgr.client import Unsteered
from mpx_controller.stock.netmgr.mpx_netmgr.pair import Pair
from mpx_controller.stock.ports import RECEIVES, SENDS, WIDTH, StreamRecogniser, chosen_ports
from mpx_controller.stock.run import Watch, run_command
from pretended import Book, saying

PORTS = st.integers(0, 65535)
PAIR = Pair("10.0.0.1", "10.0.0.2")
OURS = ("127.0.0.1", "127.0.0.1")
NOBODY = ("--url", "http://127.0.0.1:1")


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_connections_that_there_are(family: socket.AddressFamily, address: str) -> None:
    seeing = Connections()
    with socket.create_server((address, 0), family=family) as listening:
        where = listening.getsockname()[:2]
        with socket.create_connection(where) as client, listening.accept()[0]:
            mine = Connection(client.getsockname()[:2], where)
            assert {mine, Connection(mine.remote, mine.local)} <= set(seeing.now())
        assert not [each for each in seeing.now() if each.local == where]
    seeing.close()


def test_ipv4_through_a_socket_of_ipv6() -> None:
    with (
        socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening,
        socket.create_connection(("127.0.0.1", listening.getsockname()[1])) as client,
        listening.accept()[0],
    ):
        seeing = Connections()
        assert Connection(client.getpeername(), client.getsockname()) in seeing.now()
        seeing.close()


def connection(local: int, remote: int, peer: str = "10.0.0.2") -> Connection:
    return Connection((PAIR.source, local), (peer, remote))


def test_streams_of_one_who_sends() -> None:
    streams = StreamRecogniser(PAIR, range(20_000, 20_100), we_send=True)
    assert streams.environment == {SENDS: "20000,20099"}
    control = connection(20_050, 2811)
    streams, there = streams.seen([connection(40_000, 2811), control])
    assert there == [] and streams.control == 2811
    others = [
        connection(20_001, 5000, 6),
        connection(20_004, 5000, peer="10.0.0.3"),
        connection(19_999, 5000),
    ]
    streams, there = streams.seen([control, connection(20_002, 5000), connection(20_003, 5000), *others])
    assert there == [20_002, 20_003]
    late = StreamRecogniser(PAIR, range(20_000, 20_100), we_send=True)
    assert late.seen([connection(20_002, 5000), control, connection(20_003, 5000)])[1] == [20_002, 20_003]
    data = connection(20_002, 5000)
    for either in ([data, control], [control, data]):
        assert late.seen(either)[1] == [20_002]


def test_streams_of_one_who_receives() -> None:
    streams = StreamRecogniser(Pair("10.0.0.2", "10.0.0.1"), range(20_000, 20_100), we_send=False)
    assert streams.environment == {RECEIVES: "20000,20099"}
    seen = [connection(20_001, 7001), connection(20_001, 7002), connection(40_000, 2811)]
    assert streams.seen(seen)[1] == [7001, 7002]


@given(st.lists(PORTS, max_size=8), st.integers(1024, 60_000), st.integers(0, 99))
def test_chosen_ports_are_nobody_s(used: list[int], ephemeral: int, seed: int) -> None:
    chosen = chosen_ports({}, SENDS, ephemeral, used, random.Random(seed))
    assert len(chosen) == WIDTH and chosen.start >= 10_240 and chosen.stop <= 65_536
    if ephemeral >= 32_768:
        assert chosen.stop <= ephemeral and not set(used).intersection(chosen)


def test_a_range_that_a_site_wants() -> None:
    told = {SENDS: "50000,50100"}
    assert chosen_ports(told, SENDS, 32_768, [], random.Random()) == range(50_000, 50_101)
    for bad in ("", "5", "9,8", "0,5", "1,70000", "a,b"):
        with pytest.raises(ValueError, match="not a range of ports"):
            chosen_ports({SENDS: bad}, SENDS, 32_768, [], random.Random())


def test_a_command_s_status_is_ours() -> None:
    assert run_command(["sh", "-c", "exit 7"], os.environ, lambda: 1.0) == 7
    assert run_command(["sh", "-c", "kill -9 $$"], os.environ, lambda: 1.0) == 128 + 9
    with pytest.raises(FileNotFoundError):
        run_command(["no-such-command"], os.environ, lambda: 1.0)


# A shell would not do: it traps nothing that was ignored when it began, as SIGINT is in the background.
ENDS_WITH_9 = """
import os, signal
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: os._exit(9))
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_handed_on(number: signal.Signals, book: tuple[Book, str], tmp_path: Path) -> None:
    asked = command("controller", "run", "--url", book[1], "127.0.0.1", "127.0.0.1", 0)
    with subprocess.Popen(
        [*asked, sys.executable, "-c", ENDS_WITH_9], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            assert book[0].sets == {1: {}}
            process.send_signal(number)
            assert process.wait(240) == 9
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert book[0].sets == {}


SENDER = """
import os, socket, sys
low, high = map(int, os.environ["GLOBUS_TCP_SOURCE_RANGE"].split(","))
left = iter(range(low, high + 1))
def connected(listening):
    for port in left:  # other tests may have one of them meanwhile
        try:
            return socket.create_connection(listening.getsockname(), 5, ("127.0.0.1", port))
        except OSError:
            continue
listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
control, data = sorted(listening, key=lambda each: each.getsockname()[1])
with control, data:
    first = connected(control)
    kept = [connected(data) for _ in range(int(sys.argv[1]))]
    print(*(each.getsockname()[1] for each in kept), flush=True)
    sys.stdin.readline()
    kept.pop().close()
    print("closed", flush=True)
    sys.stdin.readline()
"""


def test_streams_are_placed_as_they_come_and_go(
    book: tuple[Book, str], eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of its 2048 ports others may take one, as all is between this host and itself.
    monkeypatch.setenv(SENDS, "{},{}".format(*free_ports(30)))
    words = command("controller", "run", "--url", book[1], *OURS, 0, "--")
    words += [sys.executable, "-c", SENDER, "{streams}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        ports = [int(each) for each in process.stdout.readline().split()]
        assert len(ports) == 4
        eventually(lambda: set(book[0].sets[1]) == set(ports))
        assert sorted(book[0].sets[1].values()) == [0, 1, 2, 3]
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "closed\n"
        eventually(lambda: set(book[0].sets[1]) == set(ports[:-1]))
        process.stdin.write("\n")
    assert process.returncode == 0 and book[0].sets == {}


def test_a_command_without_streams_is_told_of(book: tuple[Book, str]) -> None:
    done = mpx("controller", "run", "--url", book[1], *OURS, 0, "--", "echo", "{streams}")
    assert (done.code, done.out) == (0, "4\n") and "no stream from 127.0.0.1 to 127.0.0.1" in done.err
    done = mpx("controller", "run", "--url", book[1], *OURS, 0, "--", "false")
    assert done.code == 1 and "no stream" not in done.err  # it has said itself what is wrong


def test_without_a_controller_it_runs_all_the_same() -> None:
    done = mpx("controller", "run", *NOBODY, *OURS, 3, "echo", "{streams}")
    assert (done.code, done.out) == (0, "3\n") and "streams take one path" in done.err
    assert "no stream" not in done.err


def test_what_cannot_be_run() -> None:
    refused(mpx("controller", "run", *NOBODY, "203.0.113.1", "203.0.113.2", 2, "true"), 2, "neither")
    refused(mpx("controller", "run", "no such host", "127.0.0.1", 2, "true"), 2, "cannot find the address")
    refused(mpx("controller", "run", "--token-file", "/no/such", *OURS, 0, "true"), 2, "token")
    for nothing in (["--"], ["--json", "true"], ["--", "-p"]):
        refused(mpx("controller", "run", *NOBODY, *OURS, 0, *nothing), 2, "precede SOURCE")
    done = mpx("controller", "run", *NOBODY, *OURS, 0, "no-such-command")
    assert done.code == 127 and "cannot run no-such-command" in done.err and "Traceback" not in done.err
    refused(mpx("controller", "assign", *NOBODY, *OURS, 0), 11, "no path set")


@pytest.mark.parametrize("words", [("assign",), ("run",)])
@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1", "127.0.0.1:6680", "http://", "http://127.0.0.1:port", "http://[::1"]
)
def test_a_url_that_cannot_be_one(words: tuple[str, ...], url: str) -> None:
    command = ("true",) if words == ("run",) else ()
    refused(mpx("controller", *words, "--url", url, *OURS, 0, *command), 2, url)


PATH = {"streams": 1, "rate_bps": 1e8, "rtt_s": 0.01, "switches": ["1", "2"]}


@pytest.mark.parametrize(
    "path", [1, "p", [], {}, {**PATH, "rate_bps": "fast"}, {**PATH, "rtt_s": None}, {**PATH, "switches": 3}]
)
def test_a_path_that_is_described_wrongly_is_one_line(path: object) -> None:
    told = json.dumps({"id": 1, "streams": 1, "lease_s": 60.0, "paths": [path]}).encode()
    with saying(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s" % (len(told), told)) as url:
        refused(mpx("controller", "assign", "--url", url, *OURS, 0), 11, "describes the paths wrongly")


def test_the_folder_of_the_module_has_nothing_else() -> None:
    folder = Path(mpx("controller", "netmgr").out.strip())
    found = {each.name for each in folder.iterdir()} - {"__pycache__"}
    assert found == {"__init__.py", "mpx_netmgr"}
    code = "import sys, mpx_netmgr.session; print(*(m for m in sys.modules if m in ('ssl', 'ctypes', 'mpx')))"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_a_controller_that_is_away_is_complained_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_run, "AGAIN_S", 0.0)
    seen: list[list[int]] = [[40_000], [], [40_001], [], [40_001]]

    class Some:
        pair = PAIR

        def seen(self, ports: list[int]) -> tuple["Some", list[int]]:
            return self, ports

    class Ports:
        def now(self) -> list[int]:
            return seen.pop(0)

    class Away:
        ways = ["nobody listens", "timed out", "nobody listens", "nobody listens"]

        def place(self, *_: object) -> None:
            raise Unsteered(self.ways.pop(0))

        def next_s(self) -> float:
            return float("inf")

    said: list[str] = []
    watch = Watch(Away(), Some(), Ports(), said.append)  # type: ignore[arg-type]
    while seen:
        watch.check()
    assert said == ["streams are not steered: nobody listens"] and watch.has_seen

    seen[:], said[:] = [[40_000]], []
    watch = Watch(Away(), Some(), Ports(), said.append, Unsteered("timed out"))  # type: ignore[arg-type]
    watch.check()
    assert said == [] and watch.has_seen


def test_a_controller_that_is_away_from_the_start_is_complained_of_once(
    book: tuple[Book, str], eventually: Callable[..., None]
) -> None:
    book[0].away = True
    words = command("controller", "run", "--url", book[1], *OURS, 2, "--", sys.executable, "-c", SENDER, "2")
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        eventually(lambda: book[0].requests == 2)  # at the start, and for a stream
        _, errors = process.communicate("\n\n", 30)
    assert process.returncode == 0 and errors.count(" refuses: ") == 1, errors
