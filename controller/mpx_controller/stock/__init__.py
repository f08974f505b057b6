"""Several paths for GridFTP programs without support for them: a server module, a wrapper for clients."""
