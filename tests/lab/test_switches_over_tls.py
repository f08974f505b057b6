"""Real switches that are told of a controller with TLS, as docs/controller.md says."""

import contextlib
import json
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from certificates import make_certificates
from mpx_command import command
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.steps import SWITCHES, netns_name

CONFIG = """
[openflow]
certificate = "controller.pem"
key = "controller.key"
authority = "authority.pem"
switches = [1]
"""


@contextlib.contextmanager
def beside(switches: str, folder: Path) -> Iterator[dict[str, str]]:
    """Run a controller in the namespace of the switches; yield its URLs."""
    (folder / "controller.toml").write_text(CONFIG)
    words = command(
        "controller", "--config", "controller.toml", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0"
    )
    told = ["ip", "netns", "exec", switches, *words]
    with subprocess.Popen(told, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_switch_connects_with_the_certificate_that_it_is_told_to_show(
    make_lab: Callable[..., Lab], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    make_certificates(tmp_path)
    lab = make_lab("thesis-v")
    switches = netns_name(lab.id, SWITCHES)
    subprocess.run(["ip", "-n", switches, "link", "set", "lo", "up"], check=True)

    def vsctl(*words: object) -> None:
        asked = ["ovs-vsctl", "--no-wait", f"--db=unix:{lab.folder}/ovs/db.sock", *map(str, words)]
        subprocess.run(asked, check=True, capture_output=True)

    with beside(switches, tmp_path) as urls:

        def connected() -> Any:
            with urllib.request.urlopen(f"{urls['rest']}/topology", timeout=30) as answer:
                return [each["id"] for each in json.load(answer)["switches"] if each["connected"]]

        vsctl("set-ssl", *(tmp_path / name for name in ("switch.key", "switch.pem", "authority.pem")))
        for switch in ("s2", "s1"):  # the first is not among those allowed
            vsctl("set-controller", switch, urls["openflow"])
        eventually(lambda: inside(switches, connected) == ["1"])
