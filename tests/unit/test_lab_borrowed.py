"""Sockets of another process: as root may take them, and let go when it does."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest
from mpx_lab.traffic.borrowed import Borrowed

PROGRAM = """
import socket, sys
first, other = (socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[1:])
print("ready", flush=True)
sys.stdin.readline()
first.close()
print("closed", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take the sockets of another process")
def test_connections_of_another_process_come_and_go(eventually: Callable[..., None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as wanted, socket.create_server(("127.0.0.1", 0)) as left_out:
        ports = [str(each.getsockname()[1]) for each in (wanted, left_out)]
        command = [sys.executable, "-c", PROGRAM, *ports]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdin and other.stdout and other.stdout.readline() == b"ready\n"
            with Borrowed(other.pid, int(ports[1])) as borrowed:
                (taken,) = borrowed.connections()
                assert taken.getpeername()[1] == int(ports[0])
                assert borrowed.connections() == [taken]
                arrived, _ = wanted.accept()
                taken.sendall(b"as it would")  # it is the same connection
                assert arrived.recv(100) == b"as it would"
                other.stdin.write(b"\n")
                other.stdin.flush()
                assert other.stdout.readline() == b"closed\n"
                assert borrowed.connections() == [] and taken.fileno() == -1
                assert arrived.recv(100) == b""  # nobody holds it any more
                arrived.close()
            other.stdin.close()
