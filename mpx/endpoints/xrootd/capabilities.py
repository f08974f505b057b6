"""What servers of XRootD can, by root:// and by roots://."""

from mpx.choices import PULL
from mpx.engine.capabilities import Capabilities, PartsUp, RangeReads, StreamKind, ThirdParty
from mpx.options import OF_CAS, OF_WEB_TLS

CHECKSUMS = ("adler32", "md5")  # that sites have them compute
_WHY = "XRootD's library moves the data"
XROOTD = Capabilities(
    StreamKind.PROGRAM,
    RangeReads.ASKED,
    PartsUp.IN_TURN,  # a file is written by one client, and by nobody else meanwhile
    CHECKSUMS,
    (),
    ThirdParty("XRootD", (PULL,)),
    links=False,
    keeps_times=False,
    is_faithful=False,
    most_compared_parts=1,
    admits_many=True,
    program="XRootD",
    sets_congestion=True,
    switches_congestion=True,
    why_program=_WHY,
    why_no_session="XRootD has no GridFTP",
    own_options=("token_files", *OF_WEB_TLS, *OF_CAS),
)
SCHEMES = {"root": XROOTD, "roots": XROOTD}
