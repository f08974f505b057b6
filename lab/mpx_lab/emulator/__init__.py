"""One link of the lab: a small C program between two TAP devices, its log and its statistics."""
