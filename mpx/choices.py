"""Words and bounds that options take, for those who declare options and those who act on them."""

import os
import re
from collections.abc import Mapping

from mpx.errors import UsageError

ALGORITHMS = ("xxh3", "sha256", "md5", "adler32")  # that a user may ask for
NONE = "none"
OF_PASSED = " of what passed here"  # behind the name of a checksum that the source was not compared by
MOST_PATHS = 64
FAIR, FAST, SCAVENGER = "fair", "fast", "scavenger"
POLICIES = (FAIR, FAST, SCAVENGER)
CUBIC, BBR, RENO = "cubic", "bbr", "reno"  # congestion controls
AUTO, KERNEL = "auto", "kernel"
PAPER = "paper"  # the tuner of GridFTP-APT
TREES, KNN_DTW = "trees", "knn-dtw"  # classifiers of the background that come with mpx, the default first
CLASSIFIERS = (TREES, KNN_DTW)
MLP, SVM, NAIVE_BAYES = "mlp", "svm", "naive-bayes"  # those of OPS that a user trains
TRAINABLE = (*CLASSIFIERS, MLP, SVM, NAIVE_BAYES)
PASSIVELY, ACTIVELY = "passive", "active"  # how a path is probed: by probes alone, or beside bursts of data
PROBE_MODES = (PASSIVELY, ACTIVELY)
NEVER, ONLY = "never", "only"
PULL, PUSH = "pull", "push"  # which of two web servers is told to copy: the destination, the source
THIRD_PARTY = (AUTO, NEVER, ONLY, PULL, PUSH)  # whether data go straight from one server to another, and how
SERVICE = "service"  # which has whole files copied between two servers, many by one task (Globus)
TRANSPORT = "mptcp"  # Multipath TCP, as --transport has it
PortRange = tuple[int, int]  # first and last port, both included


def parse_ports(text: str) -> PortRange:
    """Read `40000-41000` or the GCT's `40000,41000`; raises UsageError."""
    first, _, last = text.replace(",", "-").partition("-")
    if all(re.fullmatch(r" *[0-9]{1,5} *", each) for each in (first, last)):
        ports = int(first), int(last)
        if 0 < ports[0] <= ports[1] < 65536:
            return ports
    raise UsageError(f"not a range of ports: {text!r}; write it as 40000-41000")


def port_range(
    given: str | None, variable: str, environment: Mapping[str, str] = os.environ
) -> PortRange | None:
    """Return the range given, else that of GLOBUS_TCP_PORT_RANGE or GLOBUS_TCP_SOURCE_RANGE, as the GCT does.

    Raises UsageError.
    """
    text = given or environment.get(variable)
    return parse_ports(text) if text else None
