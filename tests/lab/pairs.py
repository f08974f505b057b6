"""Two pairs of hosts, whose switches share one slow link."""

from mpx_lab.topology import Link, Topology

PAIRS = Topology(
    "pairs",
    ("src1", "src2"),
    ("dst1", "dst2"),
    (
        Link("left", "right", "wan", rate_bps=100_000_000, delay_s=0.005, queue_bytes=100_000),
        Link("src1", "left"),
        Link("src2", "left"),
        Link("right", "dst1"),
        Link("right", "dst2"),
    ),
    ("left", "right"),
)
