"""The embedded endpoint: `mpx serve` speaks enough GridFTP for mpx and for the stock clients."""

TYPE_CHECKING = False  # a lane of `mpx serve --stdio` needs none of it, and is to start soon
if TYPE_CHECKING:
    from typing import Any

    from mpx.serve.server import Server
    from mpx.serve.session import Limits

__all__ = ["Limits", "Server"]

_LAZY = {"Limits": "mpx.serve.session", "Server": "mpx.serve.server"}


def __getattr__(name: str) -> "Any":
    """Import what is asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
