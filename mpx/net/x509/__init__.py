"""Certificates as grids use them: who somebody is, who vouches for that, and proxies of a user."""
