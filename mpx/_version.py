"""The version of mpx, read by the build as well."""

__version__ = "0.1.0"
