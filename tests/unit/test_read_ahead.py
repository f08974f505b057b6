"""How much a download asks of a server ahead of what has come."""

from mpx.endpoints.ftp.mode_e.read_ahead import BLOCK_BYTES, BLOCKS_EACH, FIRST_PIECE, ReadAhead


def test_each_of_several_connections_has_many_blocks_of_a_piece() -> None:
    ahead = ReadAhead()
    ahead.connected(1)
    assert ahead.piece_bytes == FIRST_PIECE
    ahead.connected(5)
    assert ahead.piece_bytes == 5 * BLOCKS_EACH * BLOCK_BYTES


def test_goodput_is_expected_to_grow_with_the_connections() -> None:
    ahead = ReadAhead()
    ahead.connected(2)
    assert ahead.takes_s(10**9) == 0.0
    ahead._goodput = 4e6
    ahead.connected(4)
    assert ahead.goodput == 8e6
    assert ahead.takes_s(16_000_000) == 2.0
