"""What a controller reads of its disk: its state, the capacities of links, its configuration."""

import atexit
import tempfile
from contextlib import suppress
from pathlib import Path

from mpx_controller.config import checked_config, read_capacities, read_config
from mpx_controller.state_file import read_state, state_text

from mpx.errors import UsageError

_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_file = Path(_folder.name) / "file"
PATH = b"[[[1, 2], [2, 1], 1e9, 0.01], [[2, 2], [3, 1], 1e9, 0.01]]"
SEEDS = [
    b'{"version": 1, "last": 7, "hosts": [["02:00:00:00:00:01", [1, 1], ["10.0.0.1", '
    b'"fd00::1"]]], "path_sets": '
    b'[{"number": 7, "owner": "10.0.0.1", "ends": ["10.0.0.1", "10.0.0.2", [1, 1], [3, 2]], "paths": [['
    + PATH
    + b', 1e9, 0.02, 4, 0]], "max_flow_bps": 1e9, "left_s": 20.5, "hardware": ["02:00:00:00:00:01", '
    b'"02:00:00:00:00:02"], "placed": [[40001, "source", 0]]}], "mptcp": {"connections": [[1, 1, [1, 1], '
    b'["10.0.0.1", 40001, "10.0.0.2", 2811], [77], [["10.0.0.1", 40001, "10.0.0.2", 2811]]]], "last": 1, '
    b'"subflows": [[["10.0.0.1", 40001, "10.0.0.2", 2811], ["02:00:00:00:00:01", '
    b'"02:00:00:00:00:02"], [1, 1], '
    b"[3, 2], " + PATH + b", true]]}}",
    b'{"version": 1, "last": 0, "hosts": [], "path_sets": [], "mptcp": null}',
    b'[{"a": {"datapath_id": 1, "port": 2}, "b": {"datapath_id": 2, "port": 1}, '
    b'"rate_bps": 1e9, "delay_s": 0.01}, '
    b'{"a": {"host": "s1"}, "b": {"datapath_id": 2, "port": 3}, "rate_bps": null, "delay_s": 0}]',
    b'state = "state.json"\n[openflow]\nlisten = "127.0.0.1:6653"\n[api]\nlisten = "127.0.0.1:6680"\n'
    b"[path_sets]\nlease_s = 30\n[links]\ndefault_bps = 1e9\n[mptcp]\non = true\n",
]
ALLOWED = ()
WEIGHT = 2


def parse(data: bytes) -> None:
    """Read it as each; a state that is read can be written, and read again as the same."""
    _file.write_bytes(data)
    with suppress(UsageError):
        read_capacities(_file)
    with suppress(UsageError):
        checked_config(read_config(_file), "a test")
    with suppress(ValueError):
        state = read_state(data.decode(), 0.0)
        text = state_text(state.sets, state.last, state.hosts, 0.0)
        assert read_state(text, 0.0).sets == state.sets
