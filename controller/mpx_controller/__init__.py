"""The operator's side of mpx: an OpenFlow controller that hands out path sets and steers streams."""
