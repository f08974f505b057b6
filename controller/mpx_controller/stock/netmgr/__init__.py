"""The folder for PYTHONPATH of a globus-gridftp-server: it holds only the package mpx_netmgr."""
