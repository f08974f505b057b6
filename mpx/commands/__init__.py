"""The subcommands of `mpx`, a file each, and what they show."""
