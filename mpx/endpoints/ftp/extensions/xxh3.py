"""The name of a checksum of ours in CKSM (docs/extensions.md)."""

XXH3 = "MPX-XXH3"  # what mpx serve calls its own in CKSM; docs/extensions.md
