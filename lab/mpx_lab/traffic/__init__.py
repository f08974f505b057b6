"""Background traffic between two hosts of a lab, by name, and its goodput."""
