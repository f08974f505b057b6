"""What servers of GridFTP and FTP can at best, by scheme; `announced.py` reads what one of them announces."""

from dataclasses import replace

from mpx.endpoints.tickets import BY_TICKETS
from mpx.engine.capabilities import CHECKSUMS, Capabilities, PartsUp, RangeReads, StreamKind, ThirdParty
from mpx.options import OF_CAS, OF_GSI, OF_SSH

_CLEAR = Capabilities(
    StreamKind.CONNECTION,
    RangeReads.ASKED,
    PartsUp.OFFSETS,
    CHECKSUMS,
    CHECKSUMS,
    ThirdParty("FTP"),
    links=None,
)
SCHEMES = {
    "ssh": replace(_CLEAR, third_party=BY_TICKETS, through_ssh=True, own_options=OF_SSH),
    "mpx": replace(_CLEAR, third_party=BY_TICKETS, by_token=True),
    "gsiftp": replace(_CLEAR, third_party=ThirdParty("GridFTP with GSI"), own_options=(*OF_GSI, *OF_CAS)),
    "ftp": _CLEAR,
}
