"""Short reductions of our own rate, and what the queue makes of them."""
