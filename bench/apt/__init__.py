"""GridFTP-APT on the lab: the cells of its experiments, how one is run, kept and judged."""
