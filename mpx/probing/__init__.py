"""`mpx probe`: the round-trip time (RTT) of a path as a series, by a method that the target answers."""
