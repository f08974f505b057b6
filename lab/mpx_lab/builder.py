"""Carries out the steps of a plan; every function here makes one part of a lab."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from mpx_lab import relay
from mpx_lab.controller_process import OwnController
from mpx_lab.devices import without_offloads
from mpx_lab.emulator.kernel_link import KernelLink
from mpx_lab.emulator.link import EmulatedLink, LinkEnd
from mpx_lab.namespace import RUN_NETNS, inside
from mpx_lab.ovs import OpenVSwitch
from mpx_lab.programs import find, run
from mpx_lab.reach import wait_reachable
from mpx_lab.shape import Shape
from mpx_lab.simulated import is_simulated
from mpx_lab.state import LabError, Owner, environment, folder_of
from mpx_lab.steps import (
    SWITCHES,
    AddNamespace,
    Configure,
    Controller,
    Ip,
    PlainFrames,
    StartController,
    StartDatabase,
    StartLink,
    StartRelay,
    StartSwitches,
    Step,
    WaitFound,
    WaitReachable,
    WriteFile,
    cable,
    netns_name,
)


class Builder:
    """Builds the lab with an ID; the caller holds the lab's lock."""

    def __init__(self, lab_id: str) -> None:
        self.folder = folder_of(lab_id)
        self.links: dict[str, EmulatedLink] = {}
        self._environment = environment(lab_id)
        self._switch_netns = netns_name(lab_id, SWITCHES)
        self._switches = OpenVSwitch(self.folder, self._switch_netns, self._environment)

    def build(self, steps: Iterable[Step]) -> None:
        """Carry out all `steps`; raises LabError or OSError where one fails, and leaves what is built."""
        before = os.umask(0o022)  # commands of any user read the hosts file, and write nothing of the lab's
        try:
            self.folder.mkdir()
            for step in steps:
                self._do(step)
        finally:
            os.umask(before)

    def reap_links(self) -> None:
        """End the links that it started and that still run, and collect the exit codes of all."""
        for link in self.links.values():
            link.stop()

    def _do(self, step: Step) -> None:
        match step:
            case AddNamespace():
                self._add_namespace(step)
            case StartDatabase():
                self._switches.start_database()
            case StartSwitches():
                self._switches.start_daemon()
            case StartRelay(controller):
                self._start_relay(controller)
            case StartController(netns):
                OwnController(self.folder).start(netns, self._environment)
            case Ip(netns, lines):
                ip(netns, lines, self._environment)
            case PlainFrames(netns, device):
                inside(netns, partial(without_offloads, device))
            case StartLink():
                self._start_link(step)
            case Configure(arguments):
                self._switches.configure(*arguments)
            case WriteFile(name, text):
                (self.folder / name).write_text(text)
            case WaitReachable(pairs, within_s):
                wait_reachable(pairs, within_s)
            case WaitFound():
                OwnController(self.folder).wait_found(step)

    def _add_namespace(self, step: AddNamespace) -> None:
        run([find("ip"), "netns", "add", step.netns], environment=self._environment)
        apply_settings(step.netns, step.settings)

    def _start_link(self, step: StartLink) -> None:
        if is_simulated():
            for each in cable(step.a, step.b):
                self._do(each)
            at_switch = [end[0] == self._switch_netns for end in (step.a, step.b)]
            sides = (*step.a[:2], at_switch[0], step.a_to_b), (*step.b[:2], at_switch[1], step.b_to_a)
            KernelLink(self.folder, step.name).start(*sides)
            return
        ends = _end(*step.a, step.a_to_b), _end(*step.b, step.b_to_a)
        link = EmulatedLink(step.name, self.folder, *ends, pause_s=step.pause_s)
        link.start(self._environment)
        self.links[step.name] = link

    def _start_relay(self, controller: Controller) -> None:
        """Start the relay on a socket that already listens, so that the first connection succeeds."""
        log = self.folder / "relay.log"
        with socket.socket(socket.AF_UNIX) as listening, log.open("wb") as errors:
            listening.bind(str(self._switches.controller_socket))
            listening.listen()
            # Isolated: root runs no code of the folder that the caller happens to be in.
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", relay.__file__, controller.host, str(controller.port)],
                stdin=listening.fileno(),
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
        assert process.stdout is not None
        with process.stdout as output:
            if output.readline() != b"ready\n":
                process.kill()
                process.wait()
                raise LabError(f"the relay to the controller does not start: {log.read_text().strip()}")
        (self.folder / "relay.json").write_text(json.dumps(asdict(Owner.of(process.pid))))


def apply_settings(netns: str, settings: Iterable[tuple[str, str]]) -> None:
    """Write settings below /proc/sys of a namespace; raises LabError where the kernel refuses one."""

    def write_all() -> None:
        for name, value in settings:
            try:
                Path("/proc/sys", name).write_text(value)
            except OSError as error:
                raise LabError(f"cannot set {name} to {value} in {netns}: {error.strerror}") from None

    inside(netns, write_all)


def ip(netns: str, lines: Iterable[str], environment: dict[str, str]) -> None:
    """Run lines of `ip -batch` in a namespace; raises LabError with what `ip` said."""
    run([find("ip"), "-n", netns, "-batch", "-"], environment, "\n".join(lines) + "\n")


def _end(netns: str, device: str, mac: str | None, shape: Shape) -> LinkEnd:
    return LinkEnd(str(RUN_NETNS / netns), device, mac, shape)
