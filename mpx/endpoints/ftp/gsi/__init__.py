"""`gsiftp://`: GridFTP with the security of grids (GSI), by Python's ssl alone."""
