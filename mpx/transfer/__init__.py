"""One copy from start to end: what is to be copied, the loop that acts, verifying, committing, resuming."""
