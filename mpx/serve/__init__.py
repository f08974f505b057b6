"""The embedded endpoint: `mpx serve` speaks enough GridFTP for mpx and for the stock clients."""
