"""GridFTP and FTP servers: the control channel, names and listings, checksums, data connections."""
