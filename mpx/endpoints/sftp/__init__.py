"""`ssh://` where there is no mpx: the SFTP subsystem of the server there, over several ssh sessions."""
