"""Bodies of requests to a controller, over REST and XML-RPC."""

import asyncio
import atexit
import json
import xmlrpc.client
from typing import Any
from xml.parsers import expat

from mpx_controller import host_search
from mpx_controller.api.callers import Callers
from mpx_controller.api.guard import MOST_BODY, Guard
from mpx_controller.api.rest import rest_of
from mpx_controller.config import checked_config
from mpx_controller.controller import Controller

PAIR = b'"source": "10.0.0.1", "sink": "10.0.0.2"'
CALL = (
    b'<?xml version="1.0"?><methodCall><methodName>%s</methodName>'
    b"<params><param><value>%s</value></param></params></methodCall>"
)
MEMBER = b"<member><name>%s</name><value>%s</value></member>"


def struct(*members: tuple[bytes, bytes]) -> bytes:
    return b"<struct>" + b"".join(MEMBER % each for each in members) + b"</struct>"


ASSIGN = struct((b"src_ip", b"10.0.0.1"), (b"dst_ip", b"10.0.0.2"), (b"path_num", b"<int>4</int>"))
SEEDS = [
    b"",
    b"{" + PAIR + b', "paths": 4}',
    b'{"source": "fd00::1%\\ud800", "sink": "fd00::2%\\u0000\\n"}',
    b'{"source": 1e400, "sink": ' + b"9" * 5000 + b"}",
    b'{"ports": [40001, 40002, 65535], "side": "sink", "path": 1}',
    b'{"ports": [' + b"[]," * 15_000 + b"0]}",
    b"{" + b",".join(b'"x%d": 1' % each for each in range(5000)) + b"}",
    b'{"path": 0, "streams": 4, "rate_bps": 1e8, "rtt_s": 0.01}',
    b'{"path": 0, "streams": 4, "rate_bps": NaN, "rtt_s": -Infinity}',
    b"[" * 8000,
    b'{"a":' * 10_000,
    '{"source": "\u202e", "sink": "\u0661\u0660.\u0660.\u0660.\u0661"}'.encode(),
    b'\xff\xfe{\x00"\x00',
    CALL % (b"AssignMultipath", ASSIGN),
    CALL % (b"MakePath", struct((b"path_set_id", b"<i4>1</i4>"), (b"tcp_port_num", b"<int>40001</int>"))),
    CALL % (b"MakePath", b"<array><data><value>" * 2000),
    CALL % (b"MakePath", b"<struct><member><name>a</name><value>" * 1500),
    CALL % (b"system.listMethods", b"<int>" + b"9" * 5000 + b"</int>"),
    CALL % (b"&#x85;&#xfffd;\xc3\xa9", b"<base64>====</base64>"),
    CALL
    % (b"MakePath", b"<dateTime.iso8601>never</dateTime.iso8601><double>1e999</double><boolean>7</boolean>"),
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>' + CALL % (b"MakePath", b"&b;"),
    b'<!DOCTYPE x SYSTEM "file:///etc/hostname">' + CALL % (b"MakePath", b""),
    (CALL % (b"MakePath", ASSIGN)).decode().encode("utf-16"),
    b'<?xml version="1.0" encoding="utf-7"?>+AGE-',
    b"<a" + b"".join(b" a%d=''" % each for each in range(6000)) + b"/>",
]
ALLOWED = ()
WEIGHT = 8
PLACES = [
    *("/path-sets", "/path-sets/1/streams", "/path-sets/1/streams/remove", "/path-sets/1/feedback"),
    *("/RPC2", "/"),
]
NOTHING_THERE = 503


class _Client:
    """Asks the application as a caller of this host does."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        atexit.register(self.loop.close)
        self.app = self.loop.run_until_complete(self._made())

    async def _made(self) -> Guard:
        config = checked_config({"api": {"requests_per_s": 1e6}}, "a test")
        callers = Callers(config.api)
        return Guard(rest_of(Controller(config, bytes(32)), callers, "0"), callers)

    def post(self, where: str, body: bytes) -> tuple[int, bytes]:
        return self.loop.run_until_complete(self._post(where, body))

    async def _post(self, where: str, body: bytes) -> tuple[int, bytes]:
        sent: list[Any] = []
        kind = b"text/xml" if where in ("/", "/RPC2") else b"application/json"
        head = {b"host": b"localhost", b"content-type": kind, b"content-length": b"%d" % len(body)}
        scope = {
            **{"type": "http", "method": "POST", "scheme": "http", "http_version": "1.1"},
            **{"path": where, "raw_path": where.encode(), "query_string": b"", "root_path": ""},
            **{"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 6680), "headers": list(head.items())},
        }
        coming = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]

        async def receive() -> Any:
            return coming.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


host_search.EACH_S = 0.0  # no host answers here
_client = _Client()


def parse(data: bytes) -> None:
    """Send bytes as the body of each kind of request: an answer, a refusal or a fault, that can be read."""
    for where in PLACES:
        status, answer = _client.post(where, data[: 2 * MOST_BODY])
        assert status < 500 or status == NOTHING_THERE, (where, status, answer[:500])
        if where not in ("/", "/RPC2"):
            told = json.loads(answer) if answer else None
            assert status < 400 or isinstance(told["detail"], str), (where, status, answer[:500])
        elif status == 200:
            _read_answer(answer)


def _read_answer(answer: bytes) -> None:
    try:
        xmlrpc.client.loads(answer)
    except xmlrpc.client.Fault:
        pass
    except expat.ExpatError as error:
        raise AssertionError(f"an answer is no XML: {answer[:500]!r}") from error
