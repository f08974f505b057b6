"""An OpenFlow controller that assigns path sets and steers streams."""
