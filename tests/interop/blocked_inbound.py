"""Run in a network namespace of its own: a download from a stock server that cannot connect to us.

Connections to ports 20000 to 20100, where the client listens, vanish without an answer as in a firewall
that drops. Prints the JSON report.
"""

import json
import subprocess
import sys
from pathlib import Path

from interop.stock_server import StockServer

import mpx

DROP = """
ip link set lo up
ip link add hole type veth peer name bottom
ip link set bottom up
ip link set hole arp off up
ip route add default dev hole table 100
ip rule add pref 10 lookup local
ip rule add pref 5 ipproto tcp dport 20000-20100 lookup 100
ip rule del pref 0
"""


def main(folder: Path) -> None:
    """Copy folder/served/source to folder/target."""
    for line in DROP.strip().splitlines():
        subprocess.run(line.split(), check=True)
    with StockServer(folder / "served") as server:
        report = mpx.copy(
            f"{server.url}source",
            str(folder / "target"),
            mpx.CopyOptions(port_range="20000-20100", connect_timeout_s=5.0),
        )
    print(json.dumps(report.as_dict()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
