"""A network first: what there is, where hosts are, and how what nobody has assigned is forwarded."""
