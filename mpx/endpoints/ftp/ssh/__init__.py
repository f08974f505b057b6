"""`ssh://`: our own server, started at the other end of the user's ssh."""
