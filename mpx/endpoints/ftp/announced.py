"""What a server can, by what it announces when we log in (FEAT)."""

from collections.abc import Mapping
from dataclasses import replace

from mpx.endpoints.ftp.checksum_forms import forms
from mpx.endpoints.ftp.extensions import congestion, sink, third_party
from mpx.endpoints.ftp.stored_size import stores_faithfully
from mpx.endpoints.tickets import BY_TICKETS, without_tickets
from mpx.engine.capabilities import CHECKSUMS, Capabilities, PartsUp, RangeReads


def announced(best: Capabilities, features: Mapping[str, str], host: str) -> Capabilities:
    """Return what a server can that has these features; `best`: what its scheme can."""
    sums = {name: forms(features, name) for name in CHECKSUMS}
    is_faithful = stores_faithfully(features)
    congestions = tuple(features.get(congestion.FEATURE, "").split())
    others = best.third_party
    if others is BY_TICKETS and third_party.FEATURE not in features:
        others = without_tickets(host)
    return replace(
        best,
        reads=RangeReads.ASKED if "REST" in features else RangeReads.NONE,
        parts_up=PartsUp.OFFSETS if "ESTO" in features else PartsUp.BLOCKS,
        checksums=tuple(name for name, found in sums.items() if found),
        part_checksums=tuple(name for name, found in sums.items() if any(form.takes_parts for form in found)),
        third_party=others,
        sends_parts="ERET" in features,
        describes_links=is_faithful,  # Globus servers and mpx serve do, by UNIX.slink
        is_faithful=is_faithful,
        admits_many=sink.FEATURE in features,
        congestions=congestions,
        why_not_congestion=congestion.why_not_at_server(congestions) if congestions else None,
    )
