"""Multipath TCP: the subflows of each connection, and their paths (nakasan: smoc)."""
