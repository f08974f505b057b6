"""The other end of an ssh, without one: what is sent there, what of it is believed, where it is found."""

import socket
import subprocess
import sys
import time

import pytest
from older_python import older_python

from mpx.endpoints.ftp.extensions.stdio import DATA, LaneRequest
from mpx.endpoints.ftp.secured import DataHosts
from mpx.endpoints.ftp.ssh.answer import begin
from mpx.endpoints.ftp.ssh.bundle import bundle
from mpx.endpoints.ftp.ssh.direct import worth_waiting_s
from mpx.endpoints.ftp.ssh.lane import LaneSocket
from mpx.endpoints.ftp.ssh.sshftp import SshftpServer
from mpx.endpoints.ssh.addresses import addresses_of
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import SshProcess
from mpx.errors import MpxError
from mpx.location import Location


def test_the_bundle_is_the_same_each_time_and_compiles() -> None:
    assert bundle() == bundle()
    code = "import sys,zipfile,io;z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()));"
    code += "[compile(z.read(n),n,'exec') for n in z.namelist()]"
    done = subprocess.run(
        [older_python() or sys.executable, "-c", code], input=bundle(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_listing_that_is_cut_in_its_ssh_is_not_taken_for_whole() -> None:
    """Its end is believed only from an ssh that ends well; what is missing may be whole lines."""
    for ended_well in (True, False):
        ours, theirs = socket.socketpair()
        lane = LaneSocket(ours, lambda: False, lambda: None, lambda well=ended_well: well)
        theirs.sendall(b"Type=file; a\r\n")
        theirs.close()
        assert lane.recv(100) == b"Type=file; a\r\n"
        if ended_well:
            assert lane.recv(100) == b""
        else:
            with pytest.raises(ConnectionResetError):
                lane.recv(100)
            with pytest.raises(ConnectionResetError):
                lane.recv_into(bytearray(10))
        lane.close()


def test_a_server_that_names_other_addresses_is_not_followed() -> None:
    for named in ("10.0.0.1", "127.0.0.1", "169.254.169.254", "internal.example", "0.0.0.0", ""):
        assert set(addresses_of("192.0.2.7", named, lambda: False)) <= {"192.0.2.7", "10.0.0.1"}, named
    assert addresses_of("8.8.8.8", "10.0.0.1", lambda: False) == ["8.8.8.8"]
    assert addresses_of("8.8.8.8", "9.9.9.9", lambda: False) == ["9.9.9.9", "8.8.8.8"]
    assert addresses_of("behind-a-jump-host.invalid", "10.0.0.1", lambda: False) == []


@pytest.mark.parametrize(
    ("connection", "ours", "cannot_connect"),
    [
        ("192.0.2.1 5000 198.51.100.1 22", "192.0.2.1", False),
        ("192.0.2.1 5000 198.51.100.1 22", "10.0.0.7", True),  # translated, or by a jump host
        ("2001:db8::1 5000 2001:db8::2 22", "192.0.2.1", False),  # ssh over one family, data over the other
        ("2001:db8::1 5000 2001:db8::2 22", "2001:db8::9", True),
        ("", "192.0.2.1", False),
        ("UNKNOWN 65535 UNKNOWN 65535", "192.0.2.1", False),
    ],
)
def test_a_server_that_sees_another_address_of_ours_is_not_waited_for(
    connection: str, ours: str, cannot_connect: bool
) -> None:
    server = SshftpServer(SshLogin(Location("ssh", "/", "198.51.100.1")), connection)
    server.hosts = DataHosts("198.51.100.1", ours)
    assert server.is_translated is cannot_connect


@pytest.mark.parametrize("rtt_s", [0.0, 0.01, 0.06, 0.2])
def test_data_wait_for_the_third_round_trip_and_not_for_long(rtt_s: float) -> None:
    """A firewall that drops what it does not let in is not to cost more than a little."""
    asked_s = 2 * rtt_s + 0.01
    assert 3 * rtt_s < asked_s + worth_waiting_s(asked_s) < 4 * rtt_s + 0.1
    assert worth_waiting_s(10.0) == 0.0


# Each is a shell that runs in the place of ssh, so that the other end may do as it likes.
NEVER_SILENT = "for i in $(seq 400); do echo noise; sleep 0.01; done"
ASKS_AGAIN = 'for i in 1 2; do echo; echo "mpx-stdio send"; done; cat >/dev/null'


@pytest.mark.parametrize(
    ("script", "stops", "expected"),
    [
        (NEVER_SILENT, False, "brought no answer within 0.1 s"),
        (NEVER_SILENT, True, "interrupted"),
        (ASKS_AGAIN, False, "asks for it again"),
    ],
)
def test_an_other_end_that_goes_on_and_on_is_left(script: str, stops: bool, expected: str) -> None:
    process = SshProcess(["sh", "-c"], script, "h")
    wait_s = 0.1 if script == NEVER_SILENT else 60.0
    with pytest.raises(MpxError, match=expected):
        begin(process, LaneRequest("/x", DATA), wait_s, lambda: stops, lambda: b"program")
    process.close(0.0)


def test_what_the_other_end_says_on_standard_error_is_bounded() -> None:
    script = "echo first >&2; head -c 3000000 /dev/zero >&2 && echo all || echo enough"
    process = SshProcess(["sh", "-c"], script, "h")
    assert process.peek(time.monotonic() + 60, 60, lambda: False) == b"enough\n"
    assert process.said().startswith("first\n")
    process.close(0.0)
