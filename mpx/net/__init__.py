"""Sockets: TCP, Multipath TCP, pacing."""
