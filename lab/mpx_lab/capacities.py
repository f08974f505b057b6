"""What a controller cannot discover in a lab: rate and delay of each link, and the ports at its ends."""

import json
from collections.abc import Mapping

from mpx_lab.shape import Shape
from mpx_lab.topology import Link, Topology

CAPACITIES = "capacities.json"  # in the lab's folder


def capacities_text(topology: Topology, shapes: Mapping[str, Shape] | None = None) -> str:
    """Return the text of the file."""
    return json.dumps(capacities(topology, shapes or {}), indent=1) + "\n"


def capacities(topology: Topology, shapes: Mapping[str, Shape]) -> list[dict[str, object]]:
    """Return each link with rate (bit/s, None: unlimited), delay (s, one way), datapath ids and ports.

    `shapes`: current shapes by link name; links that are not in it have those of the topology.
    """

    def end(link: Link, name: str) -> dict[str, object]:
        if name not in topology.switches:
            return {"host": name}
        port = topology.ports(name).index(link) + 1
        return {"switch": name, "datapath_id": topology.datapath_id(name), "port": port}

    def as_json(link: Link, now: Link | Shape) -> dict[str, object]:
        ends = {"a": end(link, link.a), "b": end(link, link.b)}
        return {"link": link.name, **ends, "rate_bps": now.rate_bps, "delay_s": now.delay_s}

    return [as_json(link, shapes.get(link.name, link)) for link in topology.links]
