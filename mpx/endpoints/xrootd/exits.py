"""How the process that has XRootD's client library ends, so that who has started it knows why."""

NO_TRUST = 76  # TLS was not agreed on
NO_LOGIN = 77  # the server accepts none of its credentials
NO_LIBRARY = 78  # it is not installed
GONE = 69  # the server is
