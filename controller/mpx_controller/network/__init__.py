"""The network: switches, links, hosts, and the forwarding of unassigned traffic."""
