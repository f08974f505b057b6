"""Two hosts for one test: network namespaces with a veth pair between them, 50 Mbit/s towards the sink."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RATE_BPS = 50e6
ADDRESSES = {"source": ("10.9.0.1", "fd09::1"), "sink": ("10.9.0.2", "fd09::2")}


@dataclass(frozen=True)
class HostInNamespace:
    """Starts processes in a namespace: `ip netns exec` becomes the command."""

    namespace: str
    address: str
    address_v6: str

    def popen(self, args: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["ip", "netns", "exec", self.namespace, *args], **options)


@pytest.fixture(name="two_hosts")
def made_two_hosts() -> Iterator[tuple[HostInNamespace, HostInNamespace]]:
    """Source and sink; whatever still runs in them at the end is killed, and they are gone afterwards."""
    missing = [program for program in ("ip", "tc") if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        message = f"needs {'Debian package iproute2' if missing else 'root'}, to make network namespaces"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    tag = uuid.uuid4().hex[:8]
    hosts = {role: HostInNamespace(f"mpxtest-{tag}-{role}", *ADDRESSES[role]) for role in ADDRESSES}
    source, sink = hosts["source"], hosts["sink"]
    try:
        for host in hosts.values():
            _ip("netns", "add", host.namespace)
        _ip(
            "link",
            "add",
            "eth0",
            "netns",
            source.namespace,
            "type",
            "veth",
            "peer",
            "eth0",
            "netns",
            sink.namespace,
        )
        for host in hosts.values():
            _ip("-n", host.namespace, "link", "set", "lo", "up")
            _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.namespace, "address", "add", f"{host.address_v6}/64", "dev", "eth0", "nodad")
            _ip("-n", host.namespace, "link", "set", "eth0", "up")
        shape(source, RATE_BPS)
        yield source, sink
    finally:
        for host in hosts.values():
            _remove(host.namespace)


def shape(host: HostInNamespace, rate_bps: float) -> None:
    """Let a host send no faster than that, with a queue of 50 ms."""
    queue = ["tbf", "rate", f"{rate_bps:.0f}bit", "burst", "32k", "latency", "50ms"]
    command = ["tc", "-n", host.namespace, "qdisc", "replace", "dev", "eth0", "root", *queue]
    subprocess.run(command, check=True)


def _remove(namespace: str) -> None:
    if not Path("/run/netns", namespace).exists():
        return
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    for pid in found.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    _ip("netns", "delete", namespace)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def left_running(host: HostInNamespace) -> list[str]:
    """Return the processes that run on a host."""
    found = subprocess.run(
        ["ip", "netns", "pids", host.namespace], capture_output=True, text=True, check=True
    )
    return found.stdout.split()


PARENT = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from two_hosts import HostInNamespace
from mpx_lab.traffic.background import Background
from mpx_lab.traffic.spec import EXAMPLES
source, sink = (HostInNamespace(*words.split(",")) for words in sys.argv[1:3])
folder = Path(sys.argv[4])
Background(EXAMPLES[sys.argv[3]], "bg", source, sink, sink.address, folder, time.monotonic()).start()
print("started", flush=True)
time.sleep(600)
"""


def starts_and_is_killed(name: str, source: HostInNamespace, sink: HostInNamespace, folder: Path) -> None:
    """Have a process start a generator, and kill that process with SIGKILL."""
    hosts = [",".join((host.namespace, host.address, host.address_v6)) for host in (source, sink)]
    code = PARENT.format(tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", code, *hosts, name, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"started\n"
        finally:
            parent.kill()
