"""`mpx probe`: the round-trip time (RTT) of a path as a series, asked in whatever way the target answers."""
