"""The adaptive tuner of parallel streams and its parts."""
