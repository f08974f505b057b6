"""Two network namespaces and links between them, for measuring and testing the emulator alone."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mpx_lab import cleanup, state
from mpx_lab.emulator.link import EmulatedLink, LinkEnd
from mpx_lab.namespace import RUN_NETNS, enter
from mpx_lab.shape import Shape
from mpx_lab.steps import netns_name

SIDES = ("a", "b")
SYSCTLS = {
    "ipv6/conf/all/disable_ipv6": "1",  # no frame but what the measurement sends
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/tcp_rmem": "4096 131072 67108864",
    "ipv4/tcp_wmem": "4096 131072 67108864",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/conf/all/rp_filter": "0",  # answers may come over another link
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/ping_group_range": "0 0",  # root's group may send echoes through a datagram socket
}


@contextmanager
def entered(netns: str) -> Iterator[None]:
    """Let the calling thread, and no other, be in a network namespace; sockets stay where they were made."""
    with Path("/proc/thread-self/ns/net").open("rb") as home:
        enter(Path(netns))
        try:
            yield
        finally:
            enter(Path(f"/proc/self/fd/{home.fileno()}"))


class Pair:
    """Namespaces A and B with one link after the other, or several at once: `10.0.N.1` and `10.0.N.2`.

    It is a lab called `name` that is never complete: remains of a killed one are removed by the next of its
    name, or by `mpx lab down --lab NAME`. Raises LabError while another has the name.
    """

    def __init__(self, name: str) -> None:
        self._id = name
        self._lock = ExitStack()
        self.netns = [str(RUN_NETNS / netns_name(name, side)) for side in SIDES]
        self.links: list[EmulatedLink] = []
        self.folder = state.folder_of(name)

    def __enter__(self) -> "Pair":
        self._lock.enter_context(state.locked(self._id, wait=False))
        try:
            cleanup.remove(self._id)
            self.folder.mkdir()
            for netns in self.netns:
                subprocess.run(["ip", "netns", "add", Path(netns).name], check=True)
                with entered(netns):
                    _ip("link set lo up")
                    for key, value in SYSCTLS.items():
                        Path("/proc/sys/net", key).write_text(value)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.stop()
            cleanup.remove(self._id)

    def start(self, a_to_b: Shape, b_to_a: Shape, congestion: str = "cubic", **options: Any) -> EmulatedLink:
        """Start one more link; its addresses are `10.0.N.1` and `10.0.N.2` with N from 0."""
        device = f"wan{(number := len(self.links))}"
        a = LinkEnd(self.netns[0], device, _mac(number, 1), a_to_b)
        b = LinkEnd(self.netns[1], device, _mac(number, 2), b_to_a)
        link = EmulatedLink(device, self.folder, a, b, **options)
        link.start(state.environment(self._id))
        self.links.append(link)
        self.address(number, congestion)
        return link

    def start_tbf(self, rate_bps: int, queue_bytes: int, burst_bytes: int) -> None:
        """Make a veth pair `wan0` instead, with the kernel's token bucket from A to B."""
        with entered(self.netns[0]):
            _ip("link add near type veth peer name far")
            bucket = f"rate {rate_bps}bit burst {burst_bytes} limit {queue_bytes}"
            subprocess.run(["tc", *f"qdisc add dev near root tbf {bucket}".split()], check=True)
        self.adopt("near", "far")

    def adopt(self, near: str, far: str, number: int = 0) -> None:
        """Make the link `wanN` of two connected devices that are in A; the second one moves to B."""
        with entered(self.netns[0]):
            _ip(f"link set {far} netns {Path(self.netns[1]).name}")
        for host, (netns, device) in enumerate(zip(self.netns, (near, far), strict=True), 1):
            with entered(netns):
                _ip(f"link set {device} name wan{number} address {_mac(number, host)} up")
        self.address(number, "cubic")

    def answer_over(self, number: int) -> None:
        """Have what B sends to A's address on the first link go over another one."""
        with entered(self.netns[1]):
            _ip(f"route replace 10.0.0.1/32 dev wan{number} src 10.0.0.2")
            _ip(f"neighbour replace 10.0.0.1 lladdr {_mac(number, 1)} dev wan{number} nud permanent")

    def address(self, number: int, congestion: str) -> None:
        """Give the devices `wanN` their addresses, and tell each the other's: nobody asks over the link."""
        for host, netns in enumerate(self.netns, 1):
            with entered(netns):
                _ip(f"address add 10.0.{number}.{host}/24 dev wan{number}")
                _ip(f"route replace 10.0.{number}.0/24 dev wan{number} congctl {congestion}")
                other = f"10.0.{number}.{3 - host} lladdr {_mac(number, 3 - host)}"
                _ip(f"neighbour replace {other} dev wan{number} nud permanent")

    def stop(self) -> None:
        """Stop all links."""
        while self.links:
            self.links.pop().stop()

    def received_bytes(self, number: int) -> int:
        """Return the bytes of frames that came out of a link at B, as the kernel counts them."""
        with entered(self.netns[1]):
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        counts = next(line.split(":")[1] for line in lines if line.strip().startswith(f"wan{number}:"))
        return int(counts.split()[0])


def _mac(number: int, host: int) -> str:
    return f"02:00:00:00:{number:02x}:{host:02x}"


def _ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)
