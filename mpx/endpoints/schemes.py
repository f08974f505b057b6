"""What the servers of each scheme can at best: all that is known before anything connects.

A scheme is added by a file of capabilities beside its endpoint, and a line here and in
`transfer/registry.py`, which opens what serves it.
"""

from collections.abc import Mapping

from mpx.endpoints.ftp import capabilities as ftp
from mpx.endpoints.globus import capabilities as globus
from mpx.endpoints.local import capabilities as local
from mpx.endpoints.s3 import capabilities as s3
from mpx.endpoints.web import capabilities as web
from mpx.endpoints.xrootd import capabilities as xrootd
from mpx.engine.capabilities import Capabilities
from mpx.location import Location

SCHEMES: Mapping[str, Capabilities] = {
    **web.SCHEMES,
    **s3.SCHEMES,
    **xrootd.SCHEMES,
    **globus.SCHEMES,
    **ftp.SCHEMES,
    **local.SCHEMES,
}


def capabilities_of(location: Location) -> Capabilities:
    """Return what the server of a location can at best."""
    return SCHEMES[location.scheme]
