"""Options that tests of the web give a copy by their names, typed as CopyOptions has them."""

from typing import TypedDict


class GivenOptions(TypedDict, total=False):
    ca: str
    checksum: str
    recursive: bool
    rate_bps: float
    retries: int
    streams: int
    third_party: str
    timeout_s: float
