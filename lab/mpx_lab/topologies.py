"""The named topologies, as data.

Where one of several links in a row limits a path, only that one is emulated and the others are cables, since
every emulated link costs processor time. A latency that the papers print for a path is read as its round
trip, and set on that one link.
"""

from itertools import pairwise

from mpx.errors import UsageError
from mpx_lab.topology import Link, Topology, wan

MBIT = 1_000_000
# The papers name no queue for links without delay. 250 kB are 20 ms of 100 Mbit/s.
SHORT_QUEUE_BYTES = 250_000


def named(name: str) -> Topology:
    """Return the topology called `name`; raises UsageError, naming all topologies."""
    for topology in TOPOLOGIES:
        if topology.name == name:
            return topology
    names = ", ".join(topology.name for topology in TOPOLOGIES)
    raise UsageError(f"there is no topology '{name}'; there are {names} (see mpx lab list)")


def _short(a: str, b: str, rate_bps: int = 100 * MBIT) -> Link:
    """Return a link of a local testbed: a rate, no delay."""
    return Link(a, b, rate_bps=rate_bps, queue_bytes=SHORT_QUEUE_BYTES)


def _long(a: str, b: str, rate_bps: int, rtt_s: float) -> Link:
    """Return a link with a queue of one bandwidth-delay product, called a-b."""
    return wan(a, b, rate_bps, rtt_s, name=f"{a}-{b}")


def _cables(*path: str) -> tuple[Link, ...]:
    return tuple(Link(a, b) for a, b in pairwise(path))


def _between(name: str, text: str, switches: int, links: tuple[Link, ...]) -> Topology:
    """Return switches s1 to sN with the source at the first and the sink at the last."""
    names = tuple(f"s{number}" for number in range(1, switches + 1))
    ends = (Link("src", names[0]), Link(names[-1], "dst"))
    return Topology(name, ("src",), ("dst",), links + ends, names, text)


PATH = Topology(
    "path",
    ("src",),
    ("dst",),
    (wan("src", "dst", 200 * MBIT, 0.060),),
    text="two hosts, 200 Mbit/s, RTT 60 ms, 1 BDP",
)

DUMBBELL = Topology(
    "dumbbell",
    tuple(f"src{i}" for i in range(1, 5)),
    tuple(f"dst{i}" for i in range(1, 5)),
    (
        wan("left", "right", 200 * MBIT, 0.128, 0.75),
        *(Link(f"src{i}", "left") for i in range(1, 5)),
        *(Link("right", f"dst{i}") for i in range(1, 5)),
    ),
    ("left", "right"),
    "four pairs share 200 Mbit/s, RTT 128 ms, 0.75 BDP",
)

THESIS_V = _between(
    "thesis-v",
    "one path of 50 Mbit/s, RTT 100 ms; others of its kind with mpx lab link s1-s2",
    2,
    (_long("s1", "s2", 50 * MBIT, 0.100),),
)

THESIS_A = _between(
    "thesis-a",
    "four disjoint paths of 100 Mbit/s (also smoc 1)",
    6,
    tuple(_short("s1", f"s{i}") for i in range(2, 6)) + tuple(Link(f"s{i}", "s6") for i in range(2, 6)),
)

THESIS_B = _between(
    "thesis-b",
    "three paths of 100 Mbit/s, two of them share a link (also smoc 2)",
    6,
    (_short("s1", "s5"), _short("s1", "s2"), *_cables("s5", "s6", "s3", "s2", "s4", "s6")),
)

# The rates are in a figure only; these give the 2, 2 and 18 streams that the text names.
THESIS_C = _between(
    "thesis-c",
    "as thesis-b, with 50, 50 and 100 Mbit/s and RTT 30, 30 and 120 ms",
    6,
    (
        _short("s1", "s2"),
        _long("s2", "s3", 50 * MBIT, 0.030),
        _long("s2", "s4", 50 * MBIT, 0.030),
        _long("s1", "s5", 100 * MBIT, 0.120),
        *_cables("s3", "s6", "s4"),
        *_cables("s5", "s6"),
    ),
)


def _thesis_t(name: str, text: str, shared_bps: int, third_bps: int) -> Topology:
    """Return the thought example of path choice: 1-2-3-4-7, 1-2-6-7 and 1-5-7."""
    return _between(
        name,
        text,
        7,
        (
            _short("s1", "s2", shared_bps),
            _long("s2", "s3", 100 * MBIT, 0.060),
            _long("s2", "s6", 50 * MBIT, 0.110),
            _long("s1", "s5", third_bps, 0.160),
            *_cables("s3", "s4", "s7", "s6"),
            *_cables("s5", "s7"),
        ),
    )


THESIS_T1 = _thesis_t(
    "thesis-t1",
    "100, 50, 50 Mbit/s, RTT 60, 110, 160 ms; the first two share 100 Mbit/s",
    100 * MBIT,
    50 * MBIT,
)
THESIS_T2 = _thesis_t(
    "thesis-t2",
    "100, 50, 100 Mbit/s, RTT 60, 110, 160 ms; the first two share 150 Mbit/s",
    150 * MBIT,
    100 * MBIT,
)

# Four overlapping paths of a network card of 1 Gbit/s, all rates divided by 5. Together they get the expected
# 132, 40, 148 and 34 Mbit/s: via ucsd, via osaka and ucsd, via tokyo and la, via ucsd and la.
PRAGMA_4 = Topology(
    "pragma-4",
    ("naist",),
    ("uf",),
    (
        _short("naist", "s-naist", 200 * MBIT),
        _long("s-naist", "ucsd", 166 * MBIT, 0.191),
        _long("s-naist", "osaka", 40 * MBIT, 0.183),
        _long("s-naist", "tokyo", 148 * MBIT, 0.211),
        _short("ucsd", "la", 34 * MBIT),
        *_cables("osaka", "ucsd", "s-uf", "la", "tokyo"),
        Link("s-uf", "uf"),
    ),
    ("s-naist", "ucsd", "osaka", "tokyo", "la", "s-uf"),
    "four overlapping paths of 34 to 148 Mbit/s, RTT 183 to 211 ms, behind 200 Mbit/s",
)

# Its rates are not printed; 160 Mbit/s were reached over both paths.
PRAGMA_2 = Topology(
    "pragma-2",
    ("naist",),
    ("uf",),
    (
        Link("naist", "s-naist"),
        _long("s-naist", "tokyo", 100 * MBIT, 0.191),
        *_cables("tokyo", "la", "s-uf"),
        wan("s-naist", "s-uf", 100 * MBIT, 0.191, name="tunnel"),
        Link("s-uf", "uf"),
    ),
    ("s-naist", "tokyo", "la", "s-uf"),
    "two disjoint paths of 100 Mbit/s, RTT 191 ms",
)

TWO_LINKS = Topology(
    "two-links",
    ("src",),
    ("dst",),
    tuple(Link("src", "dst", f"link{i}", rate_bps=100 * MBIT, queue_bytes=SHORT_QUEUE_BYTES) for i in (1, 2)),
    text="two hosts with two interfaces each, joined by two links of 100 Mbit/s",
)

UNEVEN_LINKS = Topology(
    "uneven-links",
    ("src",),
    ("dst",),
    tuple(
        Link("src", "dst", f"link{i}", rate_bps=rate * MBIT, queue_bytes=SHORT_QUEUE_BYTES)
        for i, rate in ((1, 100), (2, 50))
    ),
    text="two hosts with two interfaces each, joined by links of 100 and 50 Mbit/s",
)


def _switched_links(name: str, text: str, *rates_bps: int) -> Topology:
    """Return a switch between those of the two hosts, joined to each by a link for each rate."""
    near = tuple(
        Link("s1", "s2", f"link{i}", rate, queue_bytes=SHORT_QUEUE_BYTES)
        for i, rate in enumerate(rates_bps, 1)
    )
    far = tuple(Link("s2", "s3", f"far{i}") for i, _ in enumerate(rates_bps, 1))
    return _between(name, text, 3, near + far)


SWITCHED_LINKS = _switched_links(
    "switched-links", "as two-links, but between switches", 100 * MBIT, 100 * MBIT
)
SWITCHED_UNEVEN = _switched_links(
    "switched-uneven", "as uneven-links, but between switches", 100 * MBIT, 50 * MBIT
)

CEPH6 = Topology(
    "ceph6",
    ("node5", "node6"),
    ("node1", "node2", "node3", "node4"),
    (
        *(_short(f"s{a}", f"s{b}") for a, b in ((1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4))),
        *(_short(f"s{a}", f"s{b}") for a, b in ((2, 5), (3, 5), (3, 6), (4, 6))),
        *(Link(f"node{i}", f"s{i}") for i in range(1, 7)),
    ),
    tuple(f"s{i}" for i in range(1, 7)),
    "six nodes, ten links of 100 Mbit/s; on few cores use --scale 0.2",
)

STAR = Topology(
    "star",
    ("src1", "src2"),
    ("dst1", "dst2"),
    tuple(
        wan(host, "hub", 100 * MBIT, 0.020, name=f"{host}-hub") for host in ("src1", "src2", "dst1", "dst2")
    ),
    ("hub",),
    "four hosts around one switch, each at 100 Mbit/s; RTT 40 ms from one to another",
)

TOPOLOGIES = (
    PATH,
    DUMBBELL,
    THESIS_A,
    THESIS_B,
    THESIS_C,
    THESIS_T1,
    THESIS_T2,
    THESIS_V,
    PRAGMA_4,
    PRAGMA_2,
    TWO_LINKS,
    UNEVEN_LINKS,
    SWITCHED_LINKS,
    SWITCHED_UNEVEN,
    CEPH6,
    STAR,
)
