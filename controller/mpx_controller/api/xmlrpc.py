"""XML-RPC with the names and members of the thesis (huang, chapter 5): AssignMultipath and MakePath."""

import ipaddress
import xmlrpc.client
from typing import Any
from xml.parsers import expat

from fastapi import Response

from mpx_controller.controller import Caller, Controller
from mpx_controller.errors import Refused
from mpx_controller.path_sets.path_set import StreamKey
from mpx_controller.path_sets.sets import MOST_PATHS

# As is usual: of the transport, of the method, of its parameters; then ours.
NOT_XML, NO_METHOD, BAD_PARAMETERS, REFUSED = -32700, -32601, -32602, 1
METHODS = ("AssignMultipath", "MakePath")
NOTHING: dict[str, int] = {}  # no members; some clients, such as XmlRpc++, take no value at all for a failure


async def answered(body: bytes, controller: Controller, caller: Caller) -> Response:
    """Return the answer to a call, which is a fault where it is refused."""
    try:
        value = await _called(body, controller, caller)
        text = xmlrpc.client.dumps((value,), methodresponse=True).encode()
    except xmlrpc.client.Fault as fault:
        text = xmlrpc.client.dumps(fault).encode()
    except Refused as error:
        text = xmlrpc.client.dumps(xmlrpc.client.Fault(REFUSED, str(error))).encode()
    return Response(text, media_type="text/xml")


async def _called(body: bytes, controller: Controller, caller: Caller) -> dict[str, int]:
    method, parameters = _read(body)
    if method not in METHODS:
        raise xmlrpc.client.Fault(
            NO_METHOD, f"there is no method {method[:64]!r}; there are {' and '.join(METHODS)}"
        )
    if len(parameters) != 1 or not isinstance(parameters[0], dict):
        raise xmlrpc.client.Fault(BAD_PARAMETERS, "expected one struct")
    asked = parameters[0]
    if method == "AssignMultipath":
        source, sink = (_address(asked, name) for name in ("src_ip", "dst_ip"))
        made = await controller.assign(source, sink, _number(asked, "path_num", 0, MOST_PATHS), caller)
        return {"path_set_id": made.number, "tcp_num": made.streams}
    number, port = _number(asked, "path_set_id", 1, 2**31 - 1), _number(asked, "tcp_port_num", 1, 65535)
    await controller.place(number, [StreamKey(port, "source")], caller.owner)
    return NOTHING


def _read(body: bytes) -> tuple[str, tuple[Any, ...]]:
    try:
        _check_declarations(body)
        parameters, method = xmlrpc.client.loads(body)
    except Exception as error:  # expat and xmlrpc have many
        raise xmlrpc.client.Fault(NOT_XML, f"not a method call: {error}") from None
    if method is None:
        raise xmlrpc.client.Fault(NOT_XML, "not a method call: it names no method")
    return method, parameters


def _check_declarations(body: bytes) -> None:
    """Raise ValueError for what has a document type, in any encoding: entities could grow without bound."""

    def refuse(*_: object) -> None:
        raise ValueError("a document type is not allowed")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(body, True)


def _address(asked: dict[str, Any], name: str) -> str:
    try:
        value = asked[name]
        if not isinstance(value, str):
            raise ValueError(name)
        return str(ipaddress.ip_address(value))
    except (KeyError, ValueError):
        raise xmlrpc.client.Fault(BAD_PARAMETERS, f"{name} must be an IP address, as a string") from None


def _number(asked: dict[str, Any], name: str, least: int, most: int) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise xmlrpc.client.Fault(BAD_PARAMETERS, f"{name} must be an int from {least} to {most}")
    return value
