"""Path sets: their paths, the streams on each, owners and leases."""
