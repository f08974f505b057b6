"""Answers of what says to be a controller, to a copy, to an operator and to a stock server."""

from contextlib import suppress

from canned_server import CannedServer
from mpx_controller.rest_client import RestClient
from mpx_controller.stock.netmgr.mpx_netmgr.client import Client, Unsteered

from mpx.choices import MOST_PATHS
from mpx.engine.path_set import PathSet, interleaved, split
from mpx.errors import ControllerError, MpxError
from mpx.sdn_client import ControllerClient

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
SET = (
    b'{"id": 7, "lease_s": 30.0, "streams": 6, "most_streams": 4096, '
    b'"paths": [{"rate_bps": 1e9, "rtt_s": 0.02, '
    b'"streams": 4, "group": 0, "up": true}, {"rate_bps": null, "rtt_s": 0.03, "streams": 2, "group": 1}]}'
)
SEEDS = [
    OK + SET,
    b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(SET) + SET,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n" + SET[:5] + b"\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b'{"paths": [0]}',
    b'HTTP/1.1 404 Not Found\r\n\r\n{"detail": "there is no path set 7"}',
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 10\r\n\r\n{",
    b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\n\r\n",
    b"HTTP/1.1 401 Unauthorized\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n{",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"220 mpx serve, GridFTP, ready.\r\n",
    OK + b"[" * 3000,
]
ALLOWED = ()
WEIGHT = 12
_server = CannedServer()
_url = f"http://127.0.0.1:{_server.port}"


def parse(data: bytes) -> None:
    """Be told it by a controller, for each kind of question."""
    _server.says = data
    with suppress(ControllerError):
        _check(ControllerClient(_url).assign("10.0.0.1", "10.0.0.2", 4))
    with suppress(ControllerError):
        ControllerClient(_url).place(7, [40001], "source", "0")
    with suppress(MpxError):
        RestClient(_url).get("switches")
    with suppress(Unsteered):
        Client(_url).assign("10.0.0.1", "10.0.0.2", 4)
    with suppress(Unsteered):
        Client(_url).place(7, [40001])


def _check(told: PathSet) -> None:
    assert 0 < len(told.paths) <= MOST_PATHS
    shares = split(9, [path.streams for path in told.paths])
    assert sum(shares) == 9
    assert len(interleaved(dict(zip(told.names, shares, strict=True)))) == 9
    assert sum(len(names) for names in told.groups) == len(told.paths)
