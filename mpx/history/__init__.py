"""What earlier copies found of the path to a server, and what the next one expects of it."""
