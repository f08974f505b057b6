"""The links of the race, each with what happens on it, and the tools that run on them for a minute."""

from collections.abc import Mapping
from dataclasses import replace

from mpx_lab.shape import FULL_FRAME_BYTES

from apt.cell import RATE, RTT, Link
from apt.tools import DOWN

RATE_BPS, RTT_S = 200_000_000, 0.060
CUBIC, BBR = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
BURSTS = f"udp-bursty(rate={RATE_BPS * 6 // 10}bit/s, period=5s)"
IN_TURN = (
    "tcp-square(congestion=cubic, on=15s, off=15s) + tcp-square(congestion=bbr, on=15s, off=15s, after=15s)"
)
FAIR, FAST, ORDINARY = "mpx-fair", "mpx-fast", "guc-p4"
OTHERS = {"": ("guc", ORDINARY, "guc-p16", "curl")}
OTHERS[DOWN] = (*OTHERS[""], "aria2", "lftp", "rclone")
SHOWN = {
    FAIR: "mpx",
    FAST: "mpx fast",
    "guc": "guc",
    ORDINARY: "guc -p 4",
    "guc-p16": "guc -p 16",
    "curl": "curl",
    "aria2": "aria2",
    "lftp": "lftp",
    "rclone": "rclone",
}


def _scenarios() -> Mapping[str, Link]:
    queue_packets = round(RATE_BPS * RTT_S / 8 / FULL_FRAME_BYTES)  # one product of bandwidth and delay
    clean = Link(RATE_BPS, RTT_S, queue_packets, None)
    return {
        "clean": clean,
        "0.01 % loss": replace(clean, loss=0.0001),
        "0.1 % loss": replace(clean, loss=0.001),
        "0.5 % loss": replace(clean, loss=0.005),
        "beside CUBIC": replace(clean, beside=CUBIC),
        "beside BBR": replace(clean, beside=BBR),
        "beside UDP bursts": replace(clean, beside=BURSTS),
        "beside CUBIC and BBR in turn": replace(clean, beside=IN_TURN),
        "RTT 60, then 120 ms": replace(clean, change=RTT, change_to=2 * RTT_S),
        "200, then 100 Mbit/s": replace(clean, change=RATE, change_to=RATE_BPS / 2),
    }


SCENARIOS = _scenarios()


def tools(down: str) -> list[str]:
    """Return the tools of a direction, ours first; `down`: `DOWN`, or an empty text."""
    return [f"{tool}{down}" for tool in (FAIR, FAST, *OTHERS[down])]
