"""Background traffic between two hosts of the lab, by name, and what it got."""
