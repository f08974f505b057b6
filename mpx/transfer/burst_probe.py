"""OPS' loop with bursts: before data move, what fills the path and what it can carry, by data of our own.

Section 4.2 of Anvari and Lu, Computers 10(6):76, 2021. The bursts disturb others for as long as they last.
"""

import threading

from mpx.choices import ACTIVELY
from mpx.errors import Interrupted, MpxError
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.probing.api import probe
from mpx.probing.result import ProbeResult
from mpx.probing.sink import NULL_DEVICE
from mpx.report import OnNote, Severity
from mpx.units import format_duration


def probe_with_bursts(
    options: CopyOptions, server: Location, note: OnNote, cancel: threading.Event
) -> ProbeResult | None:
    """Probe the path to a server with bursts, and note what it carried; None where that is not possible.

    Raises Interrupted once `cancel` is set.
    """
    try:
        found = probe(
            str(server.at(NULL_DEVICE)),
            window_s=options.probe_first_s or 0.0,
            mode=ACTIVELY,
            policy=options.policy,
            ipv4=options.ipv4,
            ipv6=options.ipv6,
            cancel=cancel,
        )
    except Interrupted:
        raise Interrupted from None
    except MpxError as error:
        note(f"no bursts before the copy: {error}", Severity.NOTICE)
        return None
    carried = f": the path carries {found.bottleneck.in_words()}" if found.bottleneck else ""
    note(f"before the copy bursts were sent for {format_duration(round(found.duration_s))}{carried}")
    return found
