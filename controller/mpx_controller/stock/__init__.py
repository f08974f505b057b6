"""Several paths for GridFTP programs without support for them: a module for servers, a wrapper for clients."""
