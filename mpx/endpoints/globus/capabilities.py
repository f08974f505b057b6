"""What collections of Globus can, to each other through its service, and to others by their HTTPS."""

from mpx.choices import SERVICE
from mpx.engine.capabilities import Capabilities, PartsUp, RangeReads, StreamKind, ThirdParty
from mpx.options import OF_CAS, OF_GLOBUS

GLOBUS = Capabilities(
    StreamKind.REQUESTS,
    RangeReads.STATED,
    PartsUp.NONE,
    (),  # the service compares what it moves itself, and tells no checksum of anything else
    (),
    ThirdParty("Globus", (SERVICE,)),
    links=False,
    is_faithful=False,
    most_compared_parts=1,
    stores_anew=True,
    admits_many=True,
    why_no_session="Globus has no sessions",
    own_options=("encrypt", *OF_GLOBUS, *OF_CAS),
)
SCHEMES = {"globus": GLOBUS}
