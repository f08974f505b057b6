"""What the servers of each scheme can at best: all that is known before anything connects.

A scheme is added by a file of capabilities beside its endpoint, and a line here and in
`transfer/registry.py`, which opens what serves it.
"""

from collections.abc import Iterable, Mapping

from mpx.endpoints.ftp import capabilities as ftp
from mpx.endpoints.gfal import capabilities as gfal
from mpx.endpoints.globus import capabilities as globus
from mpx.endpoints.local import capabilities as local
from mpx.endpoints.s3 import capabilities as s3
from mpx.endpoints.web import capabilities as web
from mpx.endpoints.xrootd import capabilities as xrootd
from mpx.engine.capabilities import Capabilities
from mpx.errors import UsageError
from mpx.location import Location, is_through_gfal, through_gfal

SCHEMES: Mapping[str, Capabilities] = {
    **web.SCHEMES,
    **s3.SCHEMES,
    **xrootd.SCHEMES,
    **gfal.SCHEMES,
    **globus.SCHEMES,
    **ftp.SCHEMES,
    **local.SCHEMES,
}


def capabilities_of(location: Location) -> Capabilities:
    """Return what the server of a location can at best."""
    return gfal.GFAL if is_through_gfal(location) else SCHEMES[location.scheme]


def reached(places: Iterable[Location], via: str | None) -> list[Location]:
    """Return the places of a copy as they are reached: where gfal2 has one end, it has the other as well.

    `via`: --via. Raises UsageError for places that gfal2 does not reach.
    """
    given = list(places)
    if via is None and not any(map(is_through_gfal, given)):
        return given
    if all(capabilities_of(place).is_here for place in given):
        raise UsageError(f"--via {via} is not possible here: it is for servers")
    return [through_gfal(place) for place in given]
