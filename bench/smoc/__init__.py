"""What the benches of Multipath TCP share: connections between hosts of labs, and the controller."""
