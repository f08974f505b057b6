"""Servers that speak HTTP: object stores, WebDAV, and storage of grids with tokens."""
