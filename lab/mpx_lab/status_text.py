"""The text of `mpx lab status`, from what `Lab.status` returns."""

from collections.abc import Iterator, Mapping
from typing import Any

from mpx.units import counted, format_duration, format_rate, format_size

UNLIMITED = "unlimited"


def status_lines(status: Mapping[str, Any], failure: str) -> Iterator[str]:
    """Yield the lines; `failure` is why a switch last had no connection to its controller, if any."""
    scale = "" if status["scale"] == 1 else f", rates times {status['scale']:g} when it was built"
    yield f"lab {status['lab']}: {status['name']}{scale}"
    for host in status["hosts"]:
        yield f"  host {host['name']:15} {' '.join(host['addresses'])}"
    for link in status["links"]:
        back = f"; back: {_way(link['back'])}" if link["back"] else ""
        what = f"{_way(link)}{back}{'' if link['up'] else ', DOWN'}"
        yield f"  link {link['name']:15} {' - '.join(link['ends'])}: {what}"
        for hindrance in link["hindrances"]:
            yield f"    may be late: {hindrance}"
    for route in status["routes"]:
        window = f", window {route['window_bytes']} bytes" if route["window_bytes"] else ""
        yield f"  route {route['host']} to {route['to'] or 'all'}: {route['congestion']}{window}"
    if status["capacities"]:
        yield f"  capacities for a controller: {status['capacities']}"
    urls = status["controller"] or {}
    if urls.get("rest") or urls.get("xmlrpc"):
        yield f"  controller: REST {urls['rest'] or 'unknown'}, XML-RPC {urls['xmlrpc'] or 'unknown'}"
    waiting = [name for name, connected in (status["connected"] or {}).items() if not connected]
    if waiting:
        why = failure or "it has not answered yet"
        yield f"  NOT connected to the controller: {', '.join(waiting)}; {why}"
    elif status["connected"]:
        yield "  all switches are connected to the controller"


def _way(way: Mapping[str, Any]) -> str:
    rate = format_rate(way["rate_bps"]) if way["rate_bps"] else UNLIMITED
    queue = format_size(way["queue_bytes"]) if way["queue_bytes"] else UNLIMITED
    if way["queue_packets"]:
        queue = counted(way["queue_packets"], "packet")
    loss = f", loss {100 * way['loss']:g}%" if way["loss"] else ""
    return f"{rate}, {format_duration(way['delay_s'])} one way, queue {queue}{loss}"
