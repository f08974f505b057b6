"""What of a transfer in MODE E counts as stored before its server has confirmed all of it.

A Globus server whose data connection breaks writes blocks that it has in hand to where the transfer begins
(globus_ftp_control_data.c, globus_l_ftp_eb_read_callback: while connections close the offset stays 0), over
what it has stored there, and told of by restart markers. So the beginning of a transfer counts only once that
is confirmed, and is sent once more by the next one.
"""

import contextlib
import time
from collections.abc import Mapping

from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.session import ClientSession
from mpx.errors import MpxError

FOREIGN_BLOCK_BYTES = 16 << 20  # more than a block of a server that sends: 256 KiB, or its -blocksize
ENDS_S = 3.0  # wait for what a server says of a transfer that was cut: then it writes no more


def certain_from(features: Mapping[str, str], start: int, end: int, block_bytes: int) -> int:
    """Return from where on markers of a transfer of [start, end) count, as its server has these features.

    `block_bytes`: no block that is sent is larger, and so nothing that the server reads at once.
    """
    return start if sink.FEATURE in features else min(end, start + block_bytes)


def await_end(session: ClientSession) -> None:
    """Return once a server has ended a transfer whose data connections were cut, or does not say so soon.

    Until then it may still write, over what another session stores meanwhile.
    """
    if session.is_aborted or sink.FEATURE in session.features:
        return
    until_s = time.monotonic() + ENDS_S
    with contextlib.suppress(MpxError):
        while (left_s := until_s - time.monotonic()) > 0 and not session.options.stop():
            reply = session.poll_reply(min(left_s, 0.1))
            if reply is not None and not reply.is_preliminary:
                return
