"""What a host can that is reached by SFTP. No scheme stands for it: an ssh may lead to something better."""

from mpx.endpoints.sftp.remote_sums import RemoteSums
from mpx.engine.capabilities import Capabilities, PartsUp, RangeReads, StreamKind

SFTP = Capabilities(
    StreamKind.PROGRAM,
    RangeReads.ASKED,
    PartsUp.OFFSETS,
    (RemoteSums.ALGORITHM,),
    (RemoteSums.ALGORITHM,),
    is_faithful=False,  # what a longer file of that name has left behind the end no checksum shows
    most_compared_parts=64,  # several programs are started for each
    program="SFTP",
    through_ssh=True,
)
