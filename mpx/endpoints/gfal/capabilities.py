"""What gfal2 can, at whatever server."""

from mpx.engine.capabilities import Capabilities, PartsUp, RangeReads, StreamKind, ThirdParty
from mpx.options import OF_CAS, OF_WEB_TLS

CHECKSUMS = ("adler32", "md5")  # that servers compute; where one does not, the file is read back
GFAL = Capabilities(
    StreamKind.COPIES,
    RangeReads.NONE,
    PartsUp.NONE,
    CHECKSUMS,
    (),
    ThirdParty("gfal2"),
    tunable=False,
    sends_parts=False,
    links=False,
    keeps_times=False,
    is_faithful=False,
    most_compared_parts=1,
    admits_many=True,
    sets_congestion=True,
    program="gfal2",
    why_program="gfal2 moves the data",
    why_no_session="gfal2 reaches it",
    own_options=("token_files", *OF_WEB_TLS, *OF_CAS),
)
SCHEMES = {"srm": GFAL}  # and what --via gfal2 is given for
