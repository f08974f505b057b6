"""Files of this host as mpx opens and writes them: by descriptor, whole or not at all."""
