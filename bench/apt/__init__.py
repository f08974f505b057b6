"""GridFTP-APT on the lab: the cells of its experiments, and how they are run, stored and judged."""
