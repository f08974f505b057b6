"""The state across restarts: path sets with their streams, hosts, subflows of Multipath TCP."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path as File
from typing import Any, NamedTuple

from mpx_controller.graph import Link, Path
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.saved import Saved, mptcp_as_json, port_of, read_mptcp
from mpx_controller.network.hosts import Host
from mpx_controller.path_sets.path_set import PathSet, SetPath, StreamKey
from mpx_controller.steering import Ends

VERSION = 1


class State(NamedTuple):
    """What was kept: path sets, the largest number ever given to one, hosts; Multipath TCP if there was."""

    sets: list[PathSet]
    last: int
    hosts: list[Host]
    mptcp: Saved | None


def state_text(
    sets: Iterable[PathSet],
    last: int,
    hosts: Iterable[Host],
    now_s: float,
    mptcp: MultipathTcp | None = None,
) -> str:
    """Return the state as JSON; of each lease the time that is left, as clocks begin again."""
    return json.dumps(
        {
            "version": VERSION,
            "last": last,
            "hosts": [[host.hardware, host.port, host.addresses] for host in hosts],
            "path_sets": [_set_as_json(each, now_s) for each in sets],
            "mptcp": mptcp_as_json(mptcp, _path_as_json) if mptcp is not None else None,
        }
    )


def read_state(text: str, now_s: float) -> State:
    """Return what `state_text` was given; raises ValueError if it is broken."""
    try:
        saved = json.loads(text)
        if saved["version"] != VERSION:
            raise ValueError(f"its version is {saved['version']}, not {VERSION}")
        hosts = [
            Host(str(hardware), port_of(port), tuple(map(str, addresses)))
            for hardware, port, addresses in saved["hosts"]
        ]
        sets = [_read(each, now_s) for each in saved["path_sets"]]
        mptcp = read_mptcp(saved["mptcp"], _path) if saved.get("mptcp") is not None else None
        return State(sets, int(saved["last"]), hosts, mptcp)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"it is not the state of a controller: {error!r}") from None


def write_whole(file: File, text: str) -> None:
    """Replace a file at once; only its owner may read it."""
    fresh = file.with_name(f".{file.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(text)
    fresh.replace(file)


def _set_as_json(known: PathSet, now_s: float) -> dict[str, Any]:
    return {
        "number": known.number,
        "owner": known.owner,
        "ends": [known.ends.source, known.ends.sink, known.ends.source_port, known.ends.sink_port],
        "paths": [
            [_path_as_json(each.path), each.rate_bps, each.rtt_s, each.streams, each.group]
            for each in known.paths
        ],
        "max_flow_bps": known.max_flow_bps,
        "left_s": known.expires_s - now_s,
        "hardware": known.hardware,
        "placed": [[key.port, key.side, place] for key, place in known.placed.items()],
    }


def _path_as_json(path: Path) -> list[Any]:
    return [[link.start, link.end, link.rate_bps, link.delay_s] for link in path]


def _read(saved: Mapping[str, Any], now_s: float) -> PathSet:
    source, sink, source_port, sink_port = saved["ends"]
    made = PathSet(
        int(saved["number"]),
        str(saved["owner"]),
        Ends(str(source), str(sink), port_of(source_port), port_of(sink_port)),
        tuple(
            SetPath(_path(links), _number(rate), _number(rtt), int(streams), int(group))
            for links, rate, rtt, streams, group in saved["paths"]
        ),
        _number(saved["max_flow_bps"]),
        now_s + _number(saved["left_s"]),
        {StreamKey(int(port), side): int(place) for port, side, place in saved["placed"]},
        _hardware(saved.get("hardware")),
    )
    if not all(0 <= place < len(made.paths) for place in made.placed.values()):
        raise ValueError(f"path set {made.number} has streams on paths that do not exist")
    if not all(key.side in ("source", "sink") and 0 < key.port < 65536 for key in made.placed):
        raise ValueError(f"path set {made.number} has streams that are not valid")
    return made


def _hardware(saved: Any) -> tuple[str, str] | None:
    """Return the addresses of two hosts; None where they were not known, or not written yet."""
    if saved is None:
        return None
    source, sink = saved
    return str(source), str(sink)


def _path(links: Iterable[Any]) -> Path:
    return tuple(
        Link(port_of(start), port_of(end), _number(rate), _number(delay)) for start, end, rate, delay in links
    )


def _number(saved: Any) -> float:
    found = float(saved)
    if not math.isfinite(found):
        raise ValueError(f"{saved!r} is not a number")
    return found
