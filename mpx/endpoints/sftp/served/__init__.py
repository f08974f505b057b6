"""The other side of SFTP: a program of ours that serves what a library reaches, to mpx alone."""
