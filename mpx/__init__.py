"""mpx moves bulk data over shared wide-area networks."""

from mpx._version import __version__

__all__ = ["__version__"]
