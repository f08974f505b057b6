"""What a lab has on disk (its state, what was set on hosts), and a dataset that others have measured."""

import atexit
import json
import tempfile
from contextlib import suppress
from pathlib import Path

from mpx_lab import state as lab_state
from mpx_lab.dataset.generators import BURST, COPY
from mpx_lab.dataset.load import load_dataset
from mpx_lab.record import FORMAT
from mpx_lab.route_list import Route, routes_of, save_routes
from mpx_lab.state import LabError, Owner, State
from mpx_lab.topologies import named

from mpx.errors import UsageError

SPLIT = b"=====\n"  # between run.json, the probes, what was acknowledged, and what dips told
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_root = Path(_folder.name)
_lab, _run = _root / "lab", _root / "dataset" / "run"
for made in (_lab, _run / "flows", _run / "rtt"):
    made.mkdir(parents=True)
save_routes(_lab, "h", [Route("h"), Route("h", "s", "bbr", 65536)])
SERIES = {
    **{"from_s": 0.0, "seconds": 0.3, "part": "passive", "nuisance": ["a", "b"], "profile": "none"},
    **{"own_congestion": "cubic", "own_streams": 4},
}
LINK = {"id": "1", "rtt_s": 0.02, "rate_bps": 1e8, "queue_bdp": 1.0}
ABOUT = {
    **{"format": FORMAT, "status": "done", "validity": {"valid": True, "reasons": []}},
    "parameters": {"link": LINK, "mix": "cubic", "series": [SERIES]},
}
PROBES = b"t_s,rtt_s,noise_s\n0.0,0.02,0.001\n0.1,0.02,\n0.2,,\n"
ACKED = b"t_s,stream,congestion,bytes_acked\n0.1,0,cubic,100\n0.2,0,cubic,300\n0.2,1,cubic,10\n"
DIPS = b"t_s,share,kept\n0.1,0.5,0.6\n"
SEEDS = [
    State("lab", named("path"), None, Owner(1, 1), "token").to_json().encode(),
    State("lab", named("star"), None, None, "token").to_json().encode(),
    (_lab / "routes.h.json").read_bytes(),
    SPLIT.join((json.dumps(ABOUT).encode(), PROBES, ACKED, DIPS)),
]
ALLOWED = ()
WEIGHT = 3


def parse(data: bytes) -> None:
    """Read it as each of these."""
    before, lab_state.LABS = lab_state.LABS, _root
    try:
        _read(data)
    finally:
        lab_state.LABS = before


def _read(data: bytes) -> None:
    for file in (_lab / "state.json", _lab / "routes.h.json"):
        file.write_bytes(data)
    with suppress(LabError):
        lab_state.load("lab")
    with suppress(LabError):
        routes_of(_lab, "h")
    about, probes, acked, dips = [*data.split(SPLIT, 3), b"", b"", b""][:4]
    (_run / "run.json").write_bytes(about)
    for name in ("single", "train"):
        (_run / "rtt" / f"{name}.csv").write_bytes(probes)
    (_run / "flows" / f"{BURST}-1a.tcp.csv").write_bytes(acked)
    (_run / "flows" / f"{COPY}-1.dips.csv").write_bytes(dips)
    with suppress(UsageError):
        load_dataset(_root / "dataset")


_read(SEEDS[-1])
assert load_dataset(_root / "dataset")  # as it should be: what follows are changes of that
