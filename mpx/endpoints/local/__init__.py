"""Files of this host."""
