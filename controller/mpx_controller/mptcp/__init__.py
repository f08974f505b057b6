"""Multipath TCP: which subflows belong together, and on which paths they go (nakasan: smoc)."""
