"""The process of a lab's own controller: starts it, and waits until it has found the network."""

import json
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mpx.errors import ControllerError, UsageError
from mpx_lab import namespace
from mpx_lab.own_controller import API_PORT, LOG, LOOPBACK, arguments, missing
from mpx_lab.state import LabError, Owner
from mpx_lab.steps import WaitFound

NEEDS = ("fastapi", "os_ken", "uvicorn")
START_S = 60.0  # 1 s where nothing else runs
ANSWER_S = 10.0
AGAIN_S = 0.1  # between two requests
LAST_WORDS = 5  # lines of its log
MOST_ANSWER = 64 << 20  # bytes


def check_installed() -> None:
    """Raise UsageError where a package that the controller needs is not installed."""
    lacking = [name for name in NEEDS if find_spec(name) is None]
    if lacking:
        raise UsageError(
            f"the lab's own controller needs {', '.join(lacking)}; install mpx from its folder with "
            "pip install '.[controller]', or give --controller tcp:HOST:PORT of one that runs elsewhere"
        )


class OwnController:
    """The controller of the lab with this folder, whether it runs or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / LOG
        self._process = folder / "controller.json"

    def start(self, netns: str, environment: Mapping[str, str]) -> None:
        """Return when it serves; raises LabError with the end of its log."""
        enter = [sys.executable, "-I", "-S", namespace.__file__, str(namespace.RUN_NETNS / netns)]
        nobody_else = [str(namespace.SAME_USER)] * 2
        # -P: root runs no code of the folder that the caller happens to be in.
        run = [sys.executable, "-P", "-m", "mpx", "controller", *arguments(self._folder)]
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:  # which it opens itself, too; Python's own errors go there
            process = subprocess.Popen(
                [*enter, str(self._folder / "hosts"), *nobody_else, *run],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        assert process.stdout is not None
        with process.stdout as output:
            ready = select.select([output], [], [], START_S)[0] and output.readline()
        if not ready:
            process.kill()
            process.wait()
            raise LabError(f"the lab's controller did not start{self.last_words()}")
        self._process.write_text(json.dumps(asdict(Owner.of(process.pid))))

    def lives(self) -> bool:
        """Whether it runs."""
        return Owner(**json.loads(self._process.read_text())).lives()

    def last_words(self) -> str:
        """Return the end of its log, to be appended to a message; empty where the log is empty."""
        said = self._log.read_text(errors="replace").strip().splitlines()[-LAST_WORDS:]
        return f"; its log ends: {' | '.join(said)}" if said else ""

    def connected(self, netns: str) -> set[int]:
        """Return the datapath ids of the switches that are connected; raises LabError."""
        try:
            answer = namespace.inside(netns, _topology)
        except (OSError, ControllerError) as error:
            raise LabError(f"the lab's controller does not answer ({error}){self.last_words()}") from None
        return {int(switch["id"], 16) for switch in answer["switches"] if switch["connected"]}

    def wait_found(self, step: WaitFound) -> None:
        """Return when it knows the links and the addresses; raises LabError, naming what is missing."""
        deadline_s = time.monotonic() + step.within_s
        while True:
            try:
                lacks = missing(namespace.inside(step.netns, _topology), step.links, step.addresses)
            except (OSError, ControllerError) as error:
                lacks = f"it does not answer ({error})"
            if not lacks:
                return
            if time.monotonic() > deadline_s or not self.lives():
                raise LabError(f"the lab's controller does not know the network: {lacks}{self.last_words()}")
            time.sleep(AGAIN_S)


def _topology() -> Any:
    from mpx.sdn_client import ControllerClient

    client = ControllerClient(f"http://{LOOPBACK}:{API_PORT}", "", answer_s=ANSWER_S, most_bytes=MOST_ANSWER)
    return client.ask("GET", "/topology")
