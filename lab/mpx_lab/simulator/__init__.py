"""Machines whose time passes only while they wait: Linux as a process, with the files of this machine."""
