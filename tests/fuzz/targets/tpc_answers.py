"""Answers of a server that copies from or to another one, whole and in pieces."""

from mpx.endpoints.web.tpc_answer import LONGEST_LINE, TpcAnswer

SEEDS = [
    b"Perf Marker\n    Timestamp: 1795938360\n    Stripe Index: 0\n    Stripe Bytes Transferred: 7\n"
    b"    Total Stripe Count: 1\n    RemoteConnections: tcp:127.0.0.1:61691\nEnd\nsuccess: Created",
    b"Perf Marker\r\nStripe Index: 3\r\nStripe Bytes Transferred: 9223372036854775807\r\nEnd\r\n"
    b'failure: Remote side failed with status code 403; error message: "no"\r\n',
    b"Stripe Bytes Transferred: 1\nStripe Index: 1\nfailure: rejected GET: 404 Not Found\n\n",
]
ALLOWED = ()
_PIECE_BYTES = 7


def parse(data: bytes) -> None:
    """Read it whole and in pieces, to the same end; what is kept of it is bounded."""
    whole, cut = TpcAnswer(), TpcAnswer()
    whole.feed(data)
    told_bytes = 0
    for at in range(0, len(data), _PIECE_BYTES):
        cut.feed(data[at : at + _PIECE_BYTES])
        assert cut.told_bytes >= told_bytes
        told_bytes = cut.told_bytes
    for answer in (whole, cut):
        answer.close()
        assert len(answer.failure) <= LONGEST_LINE
    assert vars(whole) == vars(cut)
