"""One session of a server: passes its streams to the helper, and logs."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from contextlib import suppress

from .helper import Helper
from .log import log
from .pair import Pair
from .settings import Settings, read_settings

AGAIN_S = 10.0  # after a failure nothing is asked for so long: streams begin at once then
INTERNET = (socket.AF_INET, socket.AF_INET6)
LONGEST_TASK = 64  # clients choose them
NO_TASK = ("none", "unset", "")


class Session:
    """Whatever fails is logged once, until something works again; nothing is raised."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._helper: Helper | None = None
        self._streams: dict[tuple[str, str], tuple[Pair, int]] = {}  # by the contacts that hooks get
        self._silent_until_s = 0.0
        self._failing = False
        self._logged: set[tuple[int, Pair]] = set()

    def get_ready(self) -> None:
        """A stream will follow: start the helper before it is needed."""
        if time.monotonic() >= self._silent_until_s:
            with suppress(Exception):  # the stream says what is wrong
                self._prepared()

    def connected(self, task: str, local: str, remote: str) -> None:
        """This server has connected to a client."""
        self._guarded(task, local, remote, ours=True)

    def accepted(self, task: str, local: str, remote: str) -> None:
        """A client has connected to this server."""
        self._guarded(task, local, remote, ours=False)

    def closed(self, local: str, remote: str) -> None:
        """A stream has ended."""
        with suppress(Exception):  # the next one to begin says what is wrong
            known = self._streams.pop((local, remote), None)
            if known is not None and self._helper is not None:
                self._helper.remove(*known)

    def _guarded(self, task: str, local: str, remote: str, *, ours: bool) -> None:
        if time.monotonic() < self._silent_until_s:
            return
        try:
            failure = self._begun(task, local, remote, ours=ours)
        except Exception as error:  # an exception would end the transfer
            failure = f"{type(error).__name__}: {error}"
            self._helper = None  # of which the next try makes another
        if failure:
            self._silent_until_s = time.monotonic() + AGAIN_S
            if not self._failing:
                log(f"streams are not steered: {failure}")
        self._failing = bool(failure)

    def _prepared(self) -> tuple[Settings, Helper]:
        if self._settings is None:
            self._settings = read_settings(os.environ)
        if self._helper is None:
            self._helper = Helper()
        return self._settings, self._helper

    def _begun(self, task: str, local: str, remote: str, *, ours: bool) -> str:
        """Have a stream steered; return why it is not."""
        settings, helper = self._prepared()
        there, there_port = split_contact(remote)
        if not settings.applies_to(there):
            return ""
        here, here_port = split_contact(local) if ours else (own_address(there, there_port), 0)
        name = "" if task in NO_TASK else "".join(filter(str.isprintable, task))[:LONGEST_TASK]
        pair = Pair(here, there, name) if ours else Pair(there, here, name)
        port = here_port if ours else there_port
        answer = helper.place(pair, port)
        if "failed" in answer:
            return f"{pair.source} to {pair.sink}: {answer['failed']}"
        self._streams[local, remote] = pair, port
        if (answer["path_set"], pair) not in self._logged:
            self._logged.add((answer["path_set"], pair))
            of_task = f" of task {name}" if name else ""
            paths = (
                f"{answer['paths']} path{'' if answer['paths'] == 1 else 's'}"  # runs where mpx is not there
            )
            log(
                f"streams{of_task} from {pair.source} to {pair.sink} are on {paths}, "
                f"path set {answer['path_set']}"
            )
        return ""


def split_contact(contact: str) -> tuple[str, int]:
    """Return address and port of 192.0.2.1:5000 or [2001:db8::1]:5000; raises ValueError for a name."""
    host, _, port = contact.rpartition(":")
    return plain_address(host.strip("[]")), int(port)


def plain_address(text: str) -> str:
    """Return an address as a controller knows it; IPv4 that was mapped into IPv6 is IPv4."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return str(getattr(address, "ipv4_mapped", None) or address)


def own_address(remote: str, port: int) -> str:
    """Return our address of this process's connection to a remote one; raises OSError where there is none.

    The driver calls our end by a name, which may stand for another address of this host.
    """
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError, ValueError):
            fd = os.dup(int(entry))  # of which the socket is to take possession
            try:
                found = socket.socket(fileno=fd)
            except OSError:
                os.close(fd)
                raise
            with found:
                there = found.getpeername() if found.family in INTERNET else ("", 0)
                if there[1] == port and plain_address(there[0]) == remote:
                    return plain_address(found.getsockname()[0])
    raise OSError(f"there is no connection to {remote} port {port}")
