"""Rate pulses: short reductions of our own rate, and how the queue responds."""
