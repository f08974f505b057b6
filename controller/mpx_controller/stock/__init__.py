"""Many paths for GridFTP programs that know of none: a module for servers, a command around clients."""
