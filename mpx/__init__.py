"""mpx moves bulk data over shared wide-area networks.

    import mpx
    report = mpx.copy("big.dat", "ftp://dtn.example.org/data/big.dat")

Public: `copy`, `CopyOptions`, `Report`, `Progress`, `probe`, `ProbeResult` and the errors. Nothing else is.
"""

from mpx._version import __version__

TYPE_CHECKING = False  # what takes time to import comes after the handlers of signals, see __main__
if TYPE_CHECKING:
    from typing import Any

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
    from mpx.options import CopyOptions
    from mpx.probing.api import probe
    from mpx.probing.result import ProbeResult
    from mpx.report import Progress, Report
    from mpx.transfer.copy import copy

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
    "AuthenticationError": "mpx.errors",
    "ConnectionLost": "mpx.errors",
    "ControllerError": "mpx.errors",
    "DestinationError": "mpx.errors",
    "IntegrityError": "mpx.errors",
    "Interrupted": "mpx.errors",
    "MpxError": "mpx.errors",
    "NoSpace": "mpx.errors",
    "PartialFailure": "mpx.errors",
    "SourceError": "mpx.errors",
    "TransferTimeout": "mpx.errors",
    "UsageError": "mpx.errors",
    "copy": "mpx.transfer.copy",
    "CopyOptions": "mpx.options",
    "Report": "mpx.report",
    "Progress": "mpx.report",
    "probe": "mpx.probing.api",
    "ProbeResult": "mpx.probing.result",
}


def __getattr__(name: str) -> "Any":
    """Import the parts when they are first used, so that `mpx` begins at once."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'mpx' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name the public parts, also those not imported yet."""
    return sorted(__all__)
