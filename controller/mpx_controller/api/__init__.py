"""The interfaces for callers: REST, and XML-RPC with the names of the thesis."""
