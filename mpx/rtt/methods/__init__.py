"""Methods of measuring a round-trip time, a file each."""
