"""The descriptors 0 to 2 of this process, which whoever started it may have closed."""

import os

held_descriptors: set[int] = set()  # those that were closed when mpx was started


def hold_standard_descriptors() -> None:
    """Open those of 0 to 2 that are closed on the null device, so that no file of ours gets their numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            held_descriptors.add(descriptor)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
