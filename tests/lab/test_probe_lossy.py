"""`mpx probe --mode active` over a link whose queue overflows, in simulated time."""

import json
from pathlib import Path

from simulation import Run

BURSTS = """
    import sys
    from pathlib import Path
    from mpx.serve import Server
    from mpx_lab.lab import Lab
    from mpx_lab.namespace import inside
    from mpx_lab.topology import Topology, wan

    lossy = Topology("lossy", ("src",), ("dst",), (wan("src", "dst", {rate_bps}, 0.06),))
    with Lab.up(lossy, "bursts") as lab:
        opened = dict(host="10.0.0.2", insecure=True, allow_from=["10.0.0.0/8"])
        with inside(lab.host("dst").netns, lambda: Server(Path("{folder}"), **opened)) as server:
            words = ["probe", "--mode", "active", "--json", f"10.0.0.2:{{server.port}}"]
            command = [sys.executable, "-m", "mpx", *words]
            print(lab.host("src").run(command, check=True, capture_output=True, text=True).stdout)
"""


def test_bursts_do_not_find_more_than_the_link_carries(run: Run, tmp_path: Path) -> None:
    """After a loss what was missing for a second is acknowledged with all that came behind it, at once."""
    rate_bps = 20_000_000
    told = json.loads("\n".join(run(BURSTS.format(rate_bps=rate_bps, folder=tmp_path))))
    most = max(one["bps"] for one in told["goodput"])
    assert 0.7 * rate_bps < told["bottleneck"]["rate_bps"] < rate_bps < most
