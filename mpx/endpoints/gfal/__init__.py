"""Storage that gfal2 reaches: a program of ours under the system's Python has it, and serves SFTP to mpx.

Names, listings and checksums go by requests of SFTP; data move by gfal2's own copies of whole files.
"""
