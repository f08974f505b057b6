"""The user's own ssh: its command line, its processes, and the logins that they share."""
