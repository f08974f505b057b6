"""How transfers, sessions and the server end: ABOR, timeouts, signals; and how it starts."""

import contextlib
import ctypes
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from mpx_command import AS_ANYBODY, command
from raw_client import CONTENT, RawClient, block, connect, drain, end

from mpx.endpoints.ftp import wire
from mpx.serve import Limits, Server
from mpx.serve.buffers import BLOCK_BYTES
from mpx.serve.connection import Connection

# --- ends ------------------------------------------------------------------------------------------


def is_over(data: socket.socket) -> bool:
    """Tell whether the other side has ended a data connection, in either way."""
    try:
        return data.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_waits_for_a_window_is_told_that_a_transfer_was_abandoned(
    eventually: Callable[..., None],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, connect(listener.getsockname()) as sender:
        ours, _ = listener.accept()
        connection = Connection(ours, BLOCK_BYTES, lambda: None)
        sender.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                sender.send(bytes(1 << 20))
        connection.receive(connection.buffer, fill=False)
        connection.cancel(resets=True)
        while connection.receive(connection.buffer, fill=False):
            pass  # what came before, so that to close it alone tells nobody anything
        connection.close()
        poll = select.poll()
        poll.register(sender, 0)
        eventually(lambda: poll.poll(0))


@pytest.mark.parametrize(
    "prefix",
    [b"", b"\xff\xf4\xff\xf2", b"\xff\xfd\x06\xff\xf2"],
    ids=["plain", "with telnet signals", "with an option"],
)
def test_abort_of_a_store_keeps_the_session(client, root, prefix):
    with client.storing() as sock:
        client.sock.sendall(prefix + b"ABOR\r\n")
        assert [client.reply().code, client.reply().code] == [426, 226]
        assert is_over(sock)
    assert client.do("NOOP").code == 200


def test_abort_before_any_connection_and_commands_in_between(client):
    client.mode_e()
    client.send("STOR new", "NOOP", "abor", "SYST")
    assert [client.reply().code for _ in range(4)] == [426, 200, 226, 215]


def test_abort_of_a_retrieve(client, root):
    with (root / "big").open("wb") as file:
        file.truncate(1 << 40)
    with connect(client.passive()) as data:
        client.send("RETR big")
        assert client.reply().code == 150
        data.recv(1)
        client.send("ABOR")
        assert [client.reply().code, client.reply().code] == [426, 226]


def test_abort_while_we_still_connect(client):
    with socket.socket() as crowded, contextlib.ExitStack() as stack:
        crowded.bind(("127.0.0.1", 0))
        crowded.listen(0)  # the kernel leaves what it has no room for unanswered
        stack.enter_context(connect(crowded.getsockname()))
        client.do("MODE E")
        client.do("OPTS RETR Parallelism=8;")
        client.do(f"PORT {wire.format_host_port(crowded.getsockname())}")
        client.send("RETR file", "ABOR")
        assert [client.reply().code, client.reply().code] in ([426, 226], [150, 426])
    assert client.do("NOOP").code in (200, 226)


def test_commands_wait_for_the_transfer(client):
    address = client.mode_e()
    client.send("STOR new", "SIZE new")
    with connect(address) as sock:
        sock.sendall(block(0, b"abc"))
        assert client.reply().code == 150
        sock.sendall(end(1))
        assert client.reply().code == 226
        assert client.reply().lines == ("3",)


def test_a_control_connection_that_goes_ends_the_transfer(server, eventually):
    client = RawClient(server.port)
    with client.storing() as sock:
        client.sock.close()
        assert sock.recv(1) == b""


def test_timeouts(root):
    with Server(root, writable=True, limits=Limits(idle_s=0.3, stall_s=0.2)) as server:
        with RawClient(server.port) as client:
            assert client.reply().code == 421
            with pytest.raises(EOFError):
                client.reply()
        with RawClient(server.port) as client:
            address = client.mode_e()
            assert client.do("STOR new").code == 425  # nobody connects
            address = client.passive()
            client.send("STOR new")
            with connect(address) as sock:
                sock.sendall(block(0, b"abc"))
                assert client.reply().code == 150
                reply = client.reply()
                assert reply.code == 426
                assert "nothing moved" in reply.text
        with RawClient(server.port) as client, connect(client.passive()) as sock:
            (root / "big").touch()
            os.truncate(root / "big", 1 << 30)
            client.send("RETR big")  # nobody reads
            assert [client.reply().code, client.reply().code] == [150, 426]
            drain(sock)


def test_close_ends_sessions_transfers_and_threads(root):
    before = threading.active_count()
    server = Server(root, writable=True)
    idle, busy = RawClient(server.port), RawClient(server.port)
    with busy.storing() as sock:
        server.close()
        assert is_over(sock)
    for client in (idle, busy):
        with client, pytest.raises((EOFError, ConnectionError)):
            client.reply()
    assert threading.active_count() == before
    server.close()
    with pytest.raises(ConnectionRefusedError):
        connect(("127.0.0.1", server.port))


def test_ipv6(root):
    with Server(root, host="::1") as server:
        assert server.url == f"ftp://[::1]:{server.port}/"
        with (
            socket.create_connection(("::1", server.port)) as control,
            control.makefile("rw", newline="") as file,
        ):

            def do(line: str) -> str:
                file.write(line + "\r\n")
                file.flush()
                return file.readline()

            assert file.readline().startswith("220")
            do("USER ftp")
            assert do("PASS x").startswith("230")
            assert do("PASV").startswith("522")
            port = wire.parse_extended_address(do("EPSV"))[1]
            with socket.create_connection(("::1", port)) as data:
                assert do("RETR file").startswith("150")
                assert drain(data) == CONTENT
            assert file.readline().startswith("226")
            with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
                assert do(f"EPRT |2|::1|{listener.getsockname()[1]}|").startswith("200")
                file.write("RETR file\r\n")
                file.flush()
                with listener.accept()[0] as data:
                    assert drain(data) == CONTENT


# --- the command line ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_command_line(root, number):
    command = [sys.executable, "-m", "mpx.serve", str(root), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        ready = process.stdout.readline()
        port = int(ready.split(":")[3].split("/")[0])
        assert ready == f"mpx serve: ftp://127.0.0.1:{port}/ serves {root} (read-only)\n"
        with RawClient(port) as client:
            assert client.retrieve("RETR file")[1] == CONTENT
            process.send_signal(number)
            assert process.wait(240) == 0
        assert process.stdout.read() == ""
        assert process.stderr.read() == ""


def test_a_signal_that_the_kernel_gives_to_another_thread_ends_it(root):
    """As it may do: the main thread then does not wake, and Python's own handlers never run."""
    command = [sys.executable, "-m", "mpx.serve", str(root), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        thread = max(int(name) for name in os.listdir(f"/proc/{process.pid}/task"))
        assert thread != process.pid
        tgkill = 234 if platform.machine() == "x86_64" else 131
        ctypes.CDLL(None).syscall(tgkill, process.pid, thread, signal.SIGTERM)
        assert process.wait(240) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["/none"], "cannot serve"),
        ([".", "--host", "0.0.0.0", "--insecure"], "--allow-from"),
        ([".", "--tls", "--host", "0.0.0.0", "--insecure"], "inside TLS"),
        ([".", "--certificate", "c.pem"], "add --tls"),
        ([".", "--tls", "--key", "k.pem"], "give both"),
        ([".", "--tls", "--certificate", "/none"], "cannot read the certificate"),
        (
            [".", "--host", "0.0.0.0", "--insecure", "--allow-from", "10.0.0.1/8"],
            "not an IP address or network",
        ),
        ([".", "--host", "nowhere"], "not an IP address or network"),
        ([".", "--insecure"], "not for 127.0.0.1"),
    ],
)
def test_refusals_to_start(arguments, complaint):
    from click.testing import CliRunner

    from mpx.serve.command import serve

    result = CliRunner().invoke(serve, [*arguments, "--port", "0"])
    assert result.exit_code == 2
    assert complaint in result.output


def test_a_folder_that_may_not_be_entered_is_not_served(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o600)
    anybody = AS_ANYBODY if os.geteuid() == 0 else []
    serve = [*anybody, *command("serve", closed, "--port", "0")]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        ready = process.stdout.readline()  # or the end of it
        if ready:
            process.kill()
        assert (ready, process.wait(240)) == ("", 2)
        assert f"cannot serve '{closed}': Permission denied" in process.stderr.read()


def test_a_port_in_use(server, root):
    from mpx.errors import UsageError

    with pytest.raises(UsageError, match="cannot listen"):
        Server(root, port=server.port)
