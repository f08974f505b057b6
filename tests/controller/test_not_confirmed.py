"""What a switch does not confirm: callers are told, and what they have given back stays given back."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from graphs import THESIS_A
from running_controller import Running, controller
from switches import address
from wans import ENDS
from wire_switches import wire_wan

PAIR = {"source": address("src"), "sink": address("dst"), "paths": 4}


def answer(running: Running, method: str, what: str, body: object = None) -> tuple[int, str]:
    """Return the status, and what is said."""
    asked = urllib.request.Request(
        f"{running.urls['rest']}/{what}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as told:
            return told.status, told.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


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
            told = [callers.submit(answer, running, *each) for each in asked]
            statuses, texts = zip(*(each.result() for each in told), strict=True)
        assert statuses == (202, 202, 503)
        for text in texts[:2]:
            assert "released" in text and "switch 1 has not answered" in text and "try again" not in text
        assert answer(running, "DELETE", "path-sets/1")[0] == 404
        eventually(lambda: saved() == {2: [], 3: [4003]})
