"""A private Open vSwitch in the namespace of a lab's switches, with all files in the lab's folder."""

import socket
from collections.abc import Sequence
from pathlib import Path

from mpx_lab.packet_sockets import give_room, lost
from mpx_lab.programs import find, run

ANSWER_S = 10.0
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


class OpenVSwitch:
    """The Open vSwitch of a lab; `environment` is that of its processes."""

    def __init__(self, folder: Path, netns: str, environment: dict[str, str]) -> None:
        self._folder = folder / "ovs"
        self._netns = netns
        self._environment = {
            **environment,
            **{f"OVS_{name}": str(self._folder) for name in ("RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR")},
        }

    @property
    def controller_socket(self) -> Path:
        """The socket at which the switches connect to their controller."""
        return self._folder / "controller.sock"

    def start_database(self) -> None:
        """Return when it serves."""
        self._folder.mkdir(0o700)
        self._run("ovsdb-tool", "create", str(self._folder / "conf.db"), str(SCHEMA))
        self._daemon("ovsdb-server", str(self._folder / "conf.db"), f"--remote=punix:{self._folder}/db.sock")

    def start_daemon(self) -> None:
        """Return when it serves."""
        self._daemon("ovs-vswitchd", f"unix:{self._folder}/db.sock")

    def configure(self, *arguments: str) -> None:
        """Run one transaction of ovs-vsctl; returns when the switches have applied it."""
        self._run("ovs-vsctl", f"--db=unix:{self._folder}/db.sock", "--timeout=30", *arguments)
        give_room(self._pid())

    def lost(self) -> int:
        """Return how many frames at ports were dropped because the daemon did not read them in time."""
        return lost(self._pid())

    def connected(self, switches: Sequence[str]) -> dict[str, bool]:
        """Return for each switch whether its controller answers it; raises LabError."""
        asked = (word for name in switches for word in ("--", "get", "controller", name, "is_connected"))
        database = f"--db=unix:{self._folder}/db.sock"
        output = run([find("ovs-vsctl"), database, f"--timeout={ANSWER_S:.0f}", *asked])
        return {name: word == "true" for name, word in zip(switches, output.split(), strict=True)}

    def serves(self) -> bool:
        """Whether database and daemon answer."""
        for name in ("ovsdb-server", "ovs-vswitchd"):
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(ANSWER_S)
                try:
                    asking.connect(str(self._folder / f"{name}.ctl"))
                    asking.sendall(b'{"id": 0, "method": "version", "params": []}')
                    if not asking.recv(1):
                        return False
                except OSError:
                    return False
        return True

    def _pid(self) -> int:
        return int((self._folder / "ovs-vswitchd.pid").read_text())

    def _daemon(self, program: str, *arguments: str) -> None:
        own = self._folder / program
        files = (f"--pidfile={own}.pid", f"--unixctl={own}.ctl", f"--log-file={own}.log")
        self._run(program, *arguments, *files, "-vconsole:emer", "--detach")

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program of Open vSwitch inside; with --detach it returns when the daemon is ready."""
        command = [find("ip"), "netns", "exec", self._netns, find(program), *arguments]
        run(command, environment=self._environment)


def version() -> str:
    """Return e.g. `ovs-vswitchd (Open vSwitch) 3.1.0`; raises LabError."""
    return run([find("ovs-vswitchd"), "--version"]).splitlines()[0]
