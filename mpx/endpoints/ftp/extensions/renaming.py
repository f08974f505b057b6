"""Renaming that replaces nothing, which FTP has no command for: an extension of ours (docs/extensions.md)."""

FEATURE = "MPX-RENAME-NEW"  # in the reply to FEAT
VERB = "RNNEW"  # of SITE, after RNFR
