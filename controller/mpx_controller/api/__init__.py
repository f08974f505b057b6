"""How callers ask: REST, and XML-RPC with the names of the thesis."""
