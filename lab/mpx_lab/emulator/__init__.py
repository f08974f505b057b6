"""One link of the lab: a small C program between two TAP devices, and what is known of it."""
