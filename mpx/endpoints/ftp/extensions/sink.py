"""What `mpx serve` takes only to throw it away: an extension of ours (docs/extensions.md)."""

FEATURE = "MPX-SINK"  # in the reply to FEAT
VERB = "SINK"
