"""The folder for PYTHONPATH of a globus-gridftp-server: nothing but the package mpx_netmgr is in it."""
