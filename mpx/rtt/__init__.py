"""Round-trip times (RTT): series of them, and how they are measured."""
