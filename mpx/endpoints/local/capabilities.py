"""What this host can with its own files."""

from mpx.engine.capabilities import CHECKSUMS, Capabilities, PartsUp, RangeReads, StreamKind

LOCAL = Capabilities(StreamKind.HERE, RangeReads.STATED, PartsUp.OFFSETS, CHECKSUMS, CHECKSUMS, tunable=False)
SCHEMES = {"file": LOCAL}
