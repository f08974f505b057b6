"""The counters of the controller, for Prometheus."""

from mpx_controller.api.callers import Callers
from mpx_controller.controller import Controller


def metrics_text(controller: Controller, callers: Callers) -> str:
    """Return all metrics."""
    network, sets = controller.network, controller.sets.all.values()
    metrics = {
        "switches_connected": ("gauge", "Switches that are connected.", len(network.connected)),
        "links": ("gauge", "Links, each direction counted.", len(network.graph.links)),
        "hosts": ("gauge", "Hosts that are known.", len(network.hosts.all)),
        "hosts_refused_total": (
            "counter",
            "Hosts that were not learnt, as there were too many.",
            network.hosts.refused,
        ),
        "path_sets": ("gauge", "Path sets in use.", len(sets)),
        "path_sets_total": ("counter", "Path sets assigned so far.", controller.sets.last),
        "streams": ("gauge", "Streams that are steered.", sum(len(each.placed) for each in sets)),
        "frames_in_total": (
            "counter",
            "Frames that switches have forwarded to the controller.",
            controller.switches.frames_in,
        ),
        "frames_dropped_total": (
            "counter",
            "Frames dropped, as a switch or a port forwarded too many.",
            controller.switches.frames_dropped,
        ),
        "requests_refused_total": (
            "counter",
            "Requests refused, as a caller sent too many.",
            callers.refused,
        ),
    }
    if (mptcp := controller.mptcp) is not None:
        known = mptcp.connections
        metrics |= {
            "mptcp_connections": ("gauge", "Connections of Multipath TCP that are known.", len(known.all)),
            "mptcp_connections_total": ("counter", "Connections of Multipath TCP so far.", known.last),
            "mptcp_subflows": ("gauge", "Subflows that are steered.", len(mptcp.subflows)),
            "mptcp_joins_unknown_total": (
                "counter",
                "Subflows that name no connection that is known: on the default path.",
                known.joins_unknown,
            ),
            "mptcp_refused_total": (
                "counter",
                "Subflows beyond what one port of a switch may have: on the default path.",
                known.refused,
            ),
            "mptcp_switches_off": (
                "gauge",
                "Switches that cannot match on the flags of TCP.",
                len(mptcp.off),
            ),
        }
    return "".join(
        f"# HELP mpx_{name} {text}\n# TYPE mpx_{name} {kind}\nmpx_{name} {value}\n"
        for name, (kind, text, value) in metrics.items()
    )
