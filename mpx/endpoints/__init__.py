"""The places that files are copied from and to, a package for each protocol."""
