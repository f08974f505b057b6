"""The true name of what `mpx serve` lists under another one, as FTP cannot carry it: docs/extensions.md."""

FACT = "X.mpx-name"  # in MLSD, MLSC and MLSR, percent-encoded; beside a name with CR or LF alone
