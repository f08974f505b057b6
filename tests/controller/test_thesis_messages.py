"""The messages of the thesis to the letter, and what looks like them."""

import http.client
import subprocess
import xmlrpc.client
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_controller import Running
from switches import address
from wire_switches import WireSwitch

Network = tuple[Running, dict[int, WireSwitch]]
SRC, DST = address("src"), address("dst")
CLIENT = Path(__file__).with_name("xmlrpcpp_client.cpp")


def call(method: str, *members: str) -> str:
    """Return a request as the library of the thesis writes it (XmlRpc++ 0.7)."""
    return (
        f'<?xml version="1.0"?>\r\n<methodCall><methodName>{method}</methodName>\r\n<params><param><value>'
        f"<struct>{''.join(members)}</struct></value></param></params></methodCall>\r\n"
    )


def member(name: str, value: str) -> str:
    return f"<member><name>{name}</name><value>{value}</value></member>"


def post(running: Running, body: bytes, what: str = "/RPC2") -> bytes:
    connection = http.client.HTTPConnection(*running.api, timeout=30)
    connection.putrequest("POST", what, skip_accept_encoding=True)
    connection.putheader("User-Agent", "XMLRPC++ 0.7")
    connection.putheader("Content-Type", "text/xml")
    connection.putheader("Content-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    told = answer.read()
    assert (answer.status, answer.getheader("Content-Type")) == (200, "text/xml; charset=utf-8"), told
    connection.close()
    return told


def members_of(answer: bytes) -> dict[str, tuple[str, str | None]]:
    """Return name, type and text of each member of a response's only value, a struct."""
    response = ElementTree.fromstring(answer)
    assert response.tag == "methodResponse" and [each.tag for each in response] == ["params"]
    (struct,) = response.findall("./params/param/value/struct")
    found = {}
    for each in struct:
        assert [part.tag for part in each] == ["name", "value"]
        (typed,) = each[1]
        found[str(each[0].text)] = typed.tag, typed.text
    return found


def fault_of(answer: bytes) -> xmlrpc.client.Fault:
    with pytest.raises(xmlrpc.client.Fault) as raised:
        xmlrpc.client.loads(answer)
    return raised.value


@pytest.mark.parametrize("what", ["/RPC2", "/"])
@pytest.mark.parametrize("text", ["{}", "<string>{}</string>"], ids=["untyped", "string"])
@pytest.mark.parametrize("number", ["<i4>{}</i4>", "<int>{}</int>"], ids=["i4", "int"])
def test_the_two_messages(network: Network, text: str, number: str, what: str) -> None:
    running, _ = network
    asked = call(
        "AssignMultipath",
        member("src_ip", text.format(SRC)),
        member("dst_ip", text.format(DST)),
        member("path_num", number.format(2)),
    )
    told = members_of(post(running, asked.encode(), what))
    assert {name: kind for name, (kind, _) in told.items()} == {"path_set_id": "int", "tcp_num": "int"}
    path_set = int(told["path_set_id"][1] or "")
    made = running.get(f"path-sets/{path_set}")
    assert int(told["tcp_num"][1] or "") == made["streams"] and len(made["paths"]) == 2
    port = 10_000 + path_set
    make = call(
        "MakePath",
        member("path_set_id", number.format(path_set)),
        member("tcp_port_num", number.format(port)),
    )
    assert members_of(post(running, make.encode(), what)) == {}
    assert list(running.get(f"path-sets/{path_set}")["ports"]) == [f"source:{port}"]


def test_python_reads_the_empty_answer(network: Network) -> None:
    running, _ = network
    with xmlrpc.client.ServerProxy(running.urls["xmlrpc"]) as proxy:
        made = proxy.AssignMultipath({"src_ip": SRC, "dst_ip": DST, "path_num": 0})
        assert isinstance(made, dict) and sorted(made) == ["path_set_id", "tcp_num"]
        assert proxy.MakePath({"path_set_id": made["path_set_id"], "tcp_port_num": 9000}) == {}


def test_the_library_of_the_thesis_reads_the_answers(
    network: Network, peer: Callable[[str], str], tmp_path: Path
) -> None:
    running, _ = network
    host, port = running.api
    program = tmp_path / "client"
    subprocess.run([peer("g++"), "-o", program, CLIENT, "-lxmlrpcpp"], check=True)
    asked = [program, host, str(port), SRC, DST, "9001"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True)
    number, streams, members = map(int, done.stdout.split())
    made = running.get(f"path-sets/{number}")
    assert (made["streams"], list(made["ports"]), members) == (streams, ["source:9001"], 0)


@pytest.mark.parametrize(
    ("members", "code", "says"),
    [
        ({"src_ip": "10.0.0.300"}, -32602, "src_ip must be an IP address"),
        ({"src_ip": "<i4>5</i4>"}, -32602, "src_ip must be an IP address"),
        ({"src_ip": "<boolean>1</boolean>"}, -32602, "src_ip must be an IP address"),
        ({"path_num": "<i4>65</i4>"}, -32602, "path_num must be an int from 0 to 64"),
        ({"path_num": "<i4>-1</i4>"}, -32602, "path_num must be an int from 0 to 64"),
        ({"path_num": "2"}, -32602, "path_num must be an int from 0 to 64"),
        ({"path_num": "<double>nan</double>"}, -32602, "path_num"),
        ({"path_num": f"<int>{'9' * 6000}</int>"}, -32700, "not a method call"),
        ({"path_num": "<i4>many</i4>"}, -32700, "not a method call"),
        ({"path_num": "<nil/>"}, -32602, "path_num"),
        ({"path_num": "<array><data>" * 500}, -32700, "not a method call"),
        ({"dst_ip": SRC}, 1, "source and sink are the same address"),
    ],
)
def test_members_that_cannot_be(network: Network, members: dict[str, str], code: int, says: str) -> None:
    whole = {"src_ip": SRC, "dst_ip": DST, "path_num": "<i4>1</i4>", **members}
    asked = call("AssignMultipath", *(member(name, value) for name, value in whole.items()))
    fault = fault_of(post(network[0], asked.encode()))
    assert fault.faultCode == code and says in fault.faultString


def test_what_is_not_there_is_a_fault(network: Network) -> None:
    make = call("MakePath", member("path_set_id", "<i4>99999</i4>"), member("tcp_port_num", "<i4>4000</i4>"))
    assert fault_of(post(network[0], make.encode())).faultCode == 1
    assert fault_of(post(network[0], call("system.listMethods").encode())).faultCode == -32601
    without = "<methodCall><methodName>system.listMethods</methodName></methodCall>"
    assert fault_of(post(network[0], without.encode())).faultCode == -32601


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION = (
    f'<!DOCTYPE methodCall [<!ENTITY l0 "ha">{LAUGHS}]>'
    "<methodCall><methodName>&l9;</methodName><params></params></methodCall>"
)
OUTSIDE = (
    '<!DOCTYPE methodCall [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    "<methodCall><methodName>&x;</methodName></methodCall>"
)


INSIDE = (
    '<!DOCTYPE methodCall [<!ENTITY x "MakePath">]>'
    "<methodCall><methodName>&x;</methodName><params></params></methodCall>"
)


@pytest.mark.parametrize("declared", [BILLION, OUTSIDE, INSIDE])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_types_are_refused_in_any_encoding(network: Network, declared: str, encoding: str) -> None:
    whole = f'<?xml version="1.0" encoding="{encoding}"?>{declared}'.encode(encoding)
    fault = fault_of(post(network[0], whole))
    assert (fault.faultCode, "document type" in fault.faultString) == (-32700, True)


@pytest.mark.parametrize(
    "body",
    [
        b'<?xml version="1.0" encoding="cp037"?>' + BILLION.encode("cp037"),
        b"",
        b"<methodCall/>",
        b"<methodCall><params></params></methodCall>",
        b"not XML",
        b"\xff\xfe\x00",
        b"<a>" * 2500,
    ],
)
def test_what_is_no_call(network: Network, body: bytes) -> None:
    assert fault_of(post(network[0], body)).faultCode in (-32700, -32602)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: call("MakePath", text).encode()))
@settings(max_examples=30)
def test_whatever_is_sent_a_fault_comes_back(network: Network, body: bytes) -> None:
    assert fault_of(post(network[0], body)).faultCode in (-32700, -32602, -32601)
