"""Storage that speaks root://: a program of ours has XRootD's client library, and serves SFTP to mpx."""
