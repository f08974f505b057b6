"""How the process that has gfal2 ends, so that who has started it knows why."""

NO_LOGIN = 77  # the server accepts none of its credentials
NO_LIBRARY = 78  # python3-gfal2 is not installed
GONE = 69  # the server is
