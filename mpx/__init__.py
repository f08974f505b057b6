"""mpx moves bulk data over shared wide-area networks.

    import mpx
    report = mpx.copy("big.dat", "ftp://dtn.example.org/data/big.dat")

Public: `copy`, `CopyOptions`, `Report`, `Progress`, `probe`, `ProbeResult` and the errors. Nothing else is.
"""

from mpx._version import __version__
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    ControllerError,
    DestinationError,
    IntegrityError,
    Interrupted,
    MpxError,
    NoSpace,
    PartialFailure,
    SourceError,
    TransferTimeout,
    UsageError,
)

TYPE_CHECKING = False  # typing takes longer to import than all of this, and signals wait until then
if TYPE_CHECKING:
    from typing import Any

    from mpx.options import CopyOptions
    from mpx.probing.api import probe
    from mpx.probing.result import ProbeResult
    from mpx.report import Report
    from mpx.transfer import copy
    from mpx.watcher import Progress

__all__ = [
    "AuthenticationError",
    "ConnectionLost",
    "ControllerError",
    "CopyOptions",
    "DestinationError",
    "IntegrityError",
    "Interrupted",
    "MpxError",
    "NoSpace",
    "PartialFailure",
    "ProbeResult",
    "Progress",
    "Report",
    "SourceError",
    "TransferTimeout",
    "UsageError",
    "__version__",
    "copy",
    "probe",
]

_LAZY = {
    "copy": "mpx.transfer",
    "CopyOptions": "mpx.options",
    "Report": "mpx.report",
    "Progress": "mpx.watcher",
    "probe": "mpx.probing.api",
    "ProbeResult": "mpx.probing.result",
}


def __getattr__(name: str) -> "Any":
    """Import the heavier parts when they are first used, so that `mpx --help` stays quick."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'mpx' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name the public parts, also those not imported yet."""
    return sorted(__all__)
