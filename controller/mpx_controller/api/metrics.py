"""What the controller counts, as Prometheus reads it."""

from mpx_controller.api.callers import Callers
from mpx_controller.controller import Controller


def metrics_text(controller: Controller, callers: Callers) -> str:
    """Return all metrics."""
    network, sets = controller.network, controller.sets.all.values()
    told = {
        "switches_connected": ("gauge", "Switches that are connected.", len(network.connected)),
        "links": ("gauge", "Directions of links that are seen.", len(network.graph.links)),
        "hosts": ("gauge", "Hosts that are known.", len(network.hosts.all)),
        "hosts_refused_total": ("counter", "Hosts that were one too many.", network.hosts.refused),
        "path_sets": ("gauge", "Path sets that somebody has.", len(sets)),
        "path_sets_total": ("counter", "Path sets that were given out.", controller.sets.last),
        "streams": ("gauge", "Streams that are steered.", sum(len(each.placed) for each in sets)),
        "frames_in_total": (
            "counter",
            "Frames that switches have handed over.",
            controller.switches.frames_in,
        ),
        "frames_dropped_total": (
            "counter",
            "Frames that were not looked at, as a switch or a port of it handed over too many.",
            controller.switches.frames_dropped,
        ),
        "requests_refused_total": ("counter", "Requests of callers who ask too often.", callers.refused),
    }
    return "".join(
        f"# HELP mpx_{name} {text}\n# TYPE mpx_{name} {kind}\nmpx_{name} {value}\n"
        for name, (kind, text, value) in told.items()
    )
