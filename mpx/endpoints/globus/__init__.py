"""Collections of Globus: its Transfer service names, describes and copies; their HTTPS moves data to us."""
