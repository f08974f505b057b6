"""What a switch does not confirm: callers are told, and what they have given back stays given back."""

import json
import urllib.error
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from graphs import THESIS_A
from running_controller import Running, controller
from switches import address
from wans import ENDS
from wire_switches import wire_wan

PAIR = {"source": address("src"), "sink": address("dst"), "paths": 4}


def status(running: Running, method: str, what: str, body: object = None) -> int:
    try:
        running.ask(method, what, body)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_what_is_given_back_is_not_there_again_after_a_restart(
    tmp_path: Path, eventually: Callable[..., None]
) -> None:
    state = tmp_path / "state.json"

    def saved() -> dict[int, list[int]]:
        """The ports of each path set that outlives a restart."""
        told = json.loads(state.read_text())["path_sets"] if state.exists() else []
        return {each["number"]: [port for port, *_ in each["placed"]] for each in told}

    with controller(state) as running, wire_wan(running.port, THESIS_A, ENDS) as switches:
        eventually(lambda: running.get("topology")["edges"] == ["1:1000", "6:1000"])
        for number in (1, 2, 3):
            assert running.ask("POST", "path-sets", PAIR)["id"] == number
            running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000 + number]})
        eventually(lambda: saved() == {1: [4001], 2: [4002], 3: [4003]})
        switches[1].confirms = False
        asked = (
            ("DELETE", "path-sets/1", None),
            ("POST", "path-sets/2/streams/remove", {"ports": [4002]}),
            ("POST", "path-sets/3/streams", {"ports": [4004]}),
        )
        with ThreadPoolExecutor(len(asked)) as callers:
            answers = [callers.submit(status, running, *each) for each in asked]
            assert [answer.result() for answer in answers] == [503, 503, 503]
        eventually(lambda: saved() == {2: [], 3: [4003]})
