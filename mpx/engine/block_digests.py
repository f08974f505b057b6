"""XXH3-128 of blocks: a strong, fast checksum that can be taken while blocks arrive in any order.

The checksum of a range of bytes is the XXH3-128 of the XXH3-128 digests (16 bytes each, as xxhsum prints
them) of its blocks of 256 KiB, counted from the start of the range; the last block may be shorter. It shows
damage, not forgery: it has no key, and other bytes with the same digest can be made on purpose.
"""

try:
    import xxhash
except ImportError as error:  # in the server that is sent over ssh, which does not offer this checksum
    if "failed to map segment" in str(error):  # it is there, and memory is not
        raise
    IS_HAD = False
else:
    IS_HAD = True

BLOCK_BYTES = 256 * 1024


class BlockDigest:
    """The checksum of bytes that come in order, with the shape of a hashlib object."""

    def __init__(self) -> None:
        self._blocks = xxhash.xxh3_128()  # of the digests of the blocks that are complete
        self._block = xxhash.xxh3_128()
        self._block_bytes = 0

    def update(self, data: memoryview) -> None:
        """Add bytes."""
        while len(data):
            piece = data[: BLOCK_BYTES - self._block_bytes]
            self._block.update(piece)
            self._block_bytes += len(piece)
            data = data[len(piece) :]
            if self._block_bytes == BLOCK_BYTES:
                self._blocks.update(self._block.digest())
                self._block.reset()
                self._block_bytes = 0

    def digest(self) -> bytes:
        """Return the checksum of what was added so far."""
        if not self._block_bytes:
            return self._blocks.digest()
        whole = self._blocks.copy()
        whole.update(self._block.digest())
        return whole.digest()


def of_blocks(digests: bytes) -> bytes:
    """Return the checksum of a range whose blocks have these digests, one after the other."""
    return xxhash.xxh3_128_digest(digests)


def begin_block() -> xxhash.xxh3_128:
    """Return what computes the digest of one block."""
    return xxhash.xxh3_128()
