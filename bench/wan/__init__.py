"""The race over a wide-area network: its links, and what is copied over them by which tools."""
