"""The embedded endpoint: `mpx serve` speaks enough GridFTP for mpx and for the stock clients."""

from mpx.serve.server import Server
from mpx.serve.session import Limits

__all__ = ["Limits", "Server"]
