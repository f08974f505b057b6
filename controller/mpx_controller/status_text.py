"""The answers of a controller as text."""

from collections.abc import Iterator, Sequence
from typing import Any

from mpx.units import counted, format_duration, format_rate, format_size


def status_lines(url: str, answer: dict[str, Any]) -> Iterator[str]:
    """Yield the state of a controller: switches, links, hosts, and how many path sets."""
    switches, links, hosts, sets = (answer[name] for name in ("switches", "links", "hosts", "path_sets"))
    away = [switch["id"] for switch in switches if not switch["connected"]]
    yield f"controller at {url}, {counted(answer['health']['switches'], 'switch', 'switches')} connected" + (
        f", not connected: {', '.join(away)}" if away else ""
    )
    streams = sum(len(each["ports"]) for each in sets)
    yield f"{counted(len(sets), 'path set')} with {counted(streams, 'stream')}"
    yield from _table(
        ("LINK", "RATE", "DELAY"),
        [
            (f"{link['from']} -> {link['to']}", format_rate(link["rate_bps"]), _time(link["delay_s"]))
            for link in links
        ],
    )
    yield from _table(
        ("HOST", "AT", "ADDRESSES"),
        [(host["hardware"], host["port"], " ".join(host["addresses"]) or "-") for host in hosts],
    )


def paths_lines(sets: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield each path set with its paths: what each is expected to carry, and which ports are on it."""
    if not sets:
        yield "no path sets"
    for each in sets:
        now = each["ports"] | each["elsewhere"]
        yield (
            f"path set {each['id']} of {each['owner']}: {each['source']} -> {each['sink']}, "
            f"{counted(each['streams'], 'stream')} predicted, at most {format_rate(each['max_flow_bps'])}, "
            f"ends in {_time(each['lease_s'])} unless it is renewed"
        )
        yield from _table(
            ("PATH", "SWITCHES", "", "RATE", "RTT", "STREAMS", "GROUP", "PORTS"),
            [
                (
                    str(place),
                    "-".join(path["switches"]),
                    "" if path["up"] else "down",
                    format_rate(path["rate_bps"]) if path["rate_bps"] is not None else "-",
                    _time(path["rtt_s"]),
                    str(path["streams"]),
                    str(path["group"]),
                    " ".join(port for port, at in now.items() if at == place) or "-",
                )
                for place, path in enumerate(each["paths"])
            ],
        )
        if lost := [port for port, at in now.items() if at is None]:
            yield f"  on no path of the set: {' '.join(lost)}"


def flows_lines(answer: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the entries of each stream, from the source to the sink and back."""
    if not answer:
        yield "no path sets"
    for each in answer:
        away = f", not connected: {', '.join(each['away'])}" if each["away"] else ""
        yield f"path set {each['id']}{away}"
        yield from _table(
            ("STREAM", "PATH", "SWITCH", "TO", "OUT", "PACKETS", "BYTES"),
            [
                (
                    stream["stream"],
                    str(stream["path"]),
                    entry["switch"],
                    entry["to"],
                    " ".join(map(str, entry["out"])),
                    str(entry["packets"]),
                    format_size(entry["bytes"]),
                )
                for stream in each["streams"]
                for entry in stream["entries"]
            ],
        )


def _time(seconds: float) -> str:
    return format_duration(seconds)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows) if rows else ():
        yield "  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
