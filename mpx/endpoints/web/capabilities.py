"""What web servers can at best, by scheme."""

from dataclasses import replace

from mpx.choices import PULL, PUSH
from mpx.engine.capabilities import CHECKSUMS, Capabilities, PartsUp, RangeReads, StreamKind, ThirdParty
from mpx.options import OF_CAS, OF_WEB, OF_WEB_TLS

HTTP_TPC = ThirdParty("HTTP-TPC", (PULL, PUSH))
_CLEAR = Capabilities(
    StreamKind.REQUESTS,
    RangeReads.STATED,
    PartsUp.TRIED,
    CHECKSUMS,  # by digests that it tells, or by reading back
    (),
    replace(HTTP_TPC, why_not="it is not inside TLS"),
    renames=None,
    links=False,
    keeps_times=False,
    is_faithful=False,
    most_compared_parts=1,
    admits_many=True,  # connections are cheap to a web server; one that refuses some says so by 503
    why_no_session="a web server has no sessions",
    own_options=OF_WEB,
)
_SECURED = replace(_CLEAR, third_party=HTTP_TPC, own_options=(*OF_WEB, *OF_WEB_TLS, *OF_CAS))
SCHEMES = {"http": _CLEAR, "https": _SECURED, "dav": _CLEAR, "davs": _SECURED}
