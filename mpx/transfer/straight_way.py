"""Whether two servers have a way to send to each other, without this host in between."""

from mpx.choices import AUTO, ONLY
from mpx.engine.capabilities import Capabilities
from mpx.engine.endpoint import Endpoint
from mpx.options import CopyOptions


def why_no_straight_way(source: Endpoint, destination: Endpoint) -> str:
    """Return why two servers have no way to send to each other, as far as logins tell; empty if there is one.

    Both have to speak the same protocol for it, and each has to be one that may.
    """
    first, second = source.capabilities.third_party, destination.capabilities.third_party
    if first is None or second is None or first.protocol != second.protocol:
        schemes = source.location.scheme, destination.location.scheme
        return f"there is no direct way from {schemes[0]}:// to {schemes[1]}://"
    for end in (source, destination):
        found = end.find_out().third_party
        if found is not None and found.why_not:
            return found.why_not
    return ""


def is_steered(source: Endpoint, destination: Endpoint) -> bool:
    """Tell whether one server sends straight to the other, with a congestion control that we name."""
    third_party = source.capabilities.third_party
    return third_party is not None and third_party.steered and not why_no_straight_way(source, destination)


def is_by_service(options: CopyOptions, source: Capabilities, destination: Capabilities) -> bool:
    """Tell whether a service moves the data from one server to another, by what is known without asking."""
    first, second = source.third_party, destination.third_party
    if first is None or second is None or first.protocol != second.protocol or not first.is_by_service:
        return False
    return options.third_party in (AUTO, ONLY) and options.rate_bps is None
