"""Trains the model that recognises the background, and judges it against others. Needs the extra `train`."""
