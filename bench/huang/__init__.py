"""The experiments of Huang's thesis (SDN-enabled GridFTP): stock GridFTP over several paths of a lab."""
