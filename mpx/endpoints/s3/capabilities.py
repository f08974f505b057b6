"""What servers of S3 can."""

from mpx.engine.capabilities import Capabilities, PartsUp, RangeReads, StreamKind, ThirdParty
from mpx.options import OF_CAS, OF_S3

S3 = Capabilities(
    StreamKind.REQUESTS,
    RangeReads.STATED,
    PartsUp.NUMBERED,
    ("md5", "crc32"),  # that a server may tell of a whole object
    (),
    ThirdParty("S3"),  # within one server, as there is one --endpoint-url
    keeps_folders=False,
    links=False,
    keeps_times=False,
    most_compared_parts=1,
    admits_many=True,
    why_no_session="a web server has no sessions",
    own_options=(*OF_S3, *OF_CAS),
)
SCHEMES = {"s3": S3}
