"""Series of round-trip times beside known mixes of congestion control, to train and judge classifiers on."""
