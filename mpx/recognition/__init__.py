"""Recognising the congestion control of the background from round-trip times (OPS)."""
