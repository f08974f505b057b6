"""Copies over the several paths of a path set."""
