"""The configuration file, and who may ask."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_command import mpx, refused
from mpx_controller.api.callers import Callers, UnknownToken
from mpx_controller.config import Api, Config, checked_config, read_capacities, read_config
from mpx_controller.errors import NotYours, TooMany
from mpx_controller.graph import Port

from mpx.errors import UsageError


def test_nothing_is_needed() -> None:
    config = checked_config({}, "here")
    assert (config.openflow.address, config.openflow.port, config.api.port) == ("127.0.0.1", 6653, 6680)
    assert (config.bands.table, config.bands.second, config.limits.streams) == (0, 1, 256)


def test_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "controller.toml"
    file.write_text(
        """
        state = "/var/lib/mpx/controller.json"
        [openflow]
        address = "192.0.2.1"
        certificate = "switches.pem"
        key = "switches.key"
        authority = "switches-ca.pem"
        switches = [1, 0x10]
        [api]
        address = "::1"
        port = 0
        requests_per_s = 20
        [forwarding]
        on = false
        table = 3
        [path_sets]
        lease_s = 5
        selection = "breadth-first"
        [links]
        default_bps = 1e10
        """
    )
    config = checked_config(read_config(file), str(file))
    assert config.openflow.switches == [1, 16] and not config.forwarding.on and config.bands.second == 4
    assert config.state == Path("/var/lib/mpx/controller.json") and config.limits.lease_s == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = 1", "colour: there is no such key"),
        ("openflow = 3", "openflow: it must be a table"),
        ("[api]\nports = 1", "api.ports: there is no such key"),
        ("[api]\nport = 70000", "api.port: Input should be less than or equal to 65535"),
        ("[api]\naddress = 'somewhere'", "api.address: 'somewhere' does not appear"),
        ("[api]\naddress = '192.0.2.1'", "cannot be used: api: beyond loopback"),
        ("[api]\ninsecure = true", "insecure and allow_from need each other"),
        ("[api]\nallow_from = ['10.0.0.0/8']", "insecure and allow_from need each other"),
        ("[api]\ncertificate = 'c.pem'", "a certificate needs its key"),
        ("[path_sets]\nselection = 'best'", "path_sets.selection"),
        ("[openflow]\nswitches = [0]", "openflow.switches.0"),
        ("[openflow]\naddress = '0.0.0.0'", "openflow: beyond loopback (0.0.0.0) it needs"),
        ("[openflow]\nauthority = 'a.pem'", "openflow: certificate, key and authority need each other"),
        ("[openflow]\ncertificate = 'c.pem'\nkey = 'c.key'", "openflow: certificate, key and authority"),
        ("[openflow]\ninsecure = true", "openflow: insecure and allow_from need each other"),
        (
            "[openflow]\ncertificate = 'c.pem'\nkey = 'c.key'\nauthority = 'a.pem'\n"
            "insecure = true\nallow_from = ['10.0.0.0/8']",
            "openflow: insecure is for switches without TLS",
        ),
        ("[mptcp]\nof = true", "mptcp.of: there is no such key"),
        ("[mptcp]\non = true\n[forwarding]\non = false", "mptcp.on needs forwarding.on"),
        ("[", "is not TOML"),
        ("[[api.tokens]]\nowner = 'local'\nfile = 't'", "owner: 'local' is reserved"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "controller.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as raised:
        checked_config(read_config(file), str(file))
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", ":6653", "[::1]:x", "127.0.0.1:\N{SUPERSCRIPT THREE}", f"::1:{'9' * 5000}"]
)
def test_what_is_no_address_to_listen_on(text: str) -> None:
    refused(mpx("controller", "--listen", text), 2, "is not an address: write HOST:PORT")


def test_subflows_are_spread_unless_somebody_else_forwards() -> None:
    assert checked_config({}, "here").spreads_mptcp
    assert not checked_config({"mptcp": {"on": False}}, "here").spreads_mptcp
    assert not checked_config({"forwarding": {"on": False}}, "here").spreads_mptcp


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none.toml cannot be read: No such file or directory$"):
        read_config(tmp_path / "none.toml")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda some: st.lists(some) | st.dictionaries(st.text(), some),
    )
)
def test_nothing_but_a_usage_error(told: object) -> None:
    for tried in ({"api": told}, {"openflow": told}, {"state": told}, {"links": told}):
        try:
            assert isinstance(checked_config(tried, "here"), Config)
        except UsageError as error:
            assert "here cannot be used" in str(error)


def test_capacities_of_a_lab(tmp_path: Path) -> None:
    file = tmp_path / "capacities.json"
    ends = {
        "a": {"switch": "s1", "datapath_id": 1, "port": 2},
        "b": {"switch": "s2", "datapath_id": 2, "port": 1},
    }
    file.write_text(
        json.dumps(
            [
                {"link": "x", **ends, "rate_bps": 5e6, "delay_s": 0.01},
                {"link": "y", **ends, "a": {"host": "src"}, "rate_bps": None, "delay_s": 0},
            ]
        )
    )
    there, back = (Port(1, 2), Port(2, 1)), (Port(2, 1), Port(1, 2))
    assert read_capacities(file) == ({there: 5e6, back: 5e6}, {there: 0.01, back: 0.01})
    file.write_text(json.dumps([{"link": "x", **ends, "rate_bps": None, "delay_s": 0}]))
    assert read_capacities(file) == ({}, {there: 0.0, back: 0.0})
    file.write_text('[{"link": "x"}]')
    with pytest.raises(UsageError, match="a link has no 'a'"):
        read_capacities(file)
    for other in ('[{"a": 1}]', "3", "[3]"):
        file.write_text(other)
        with pytest.raises(UsageError, match="it is not a list of links as"):
            read_capacities(file)


@pytest.mark.parametrize(
    ("rate", "delay", "says"),
    [
        ("1e999", "0", "has rate_bps inf;"),
        ("NaN", "0", "has rate_bps nan;"),
        ("0", "0", "has rate_bps 0.0;"),
        ("-5e6", "0", "has rate_bps -5000000.0;"),
        ("1e-310", "0", "has rate_bps 1e-310;"),
        ("1e308", "0", "has rate_bps 1e+308;"),
        ("1" + 400 * "0", "0", "cannot be used"),
        ("5e6", "Infinity", "has delay_s inf;"),
        ("null", "NaN", "has delay_s nan;"),
        ("5e6", "1e308", "has delay_s 1e+308;"),
        ("5e6", "-0.001", "has delay_s -0.001;"),
    ],
)
def test_capacities_that_no_link_has(tmp_path: Path, rate: str, delay: str, says: str) -> None:
    file = tmp_path / "capacities.json"
    ends = '"a": {"datapath_id": 1, "port": 2}, "b": {"datapath_id": 2, "port": 1}'
    file.write_text(f'[{{{ends}, "rate_bps": {rate}, "delay_s": {delay}}}]')
    with pytest.raises(UsageError) as raised:
        read_capacities(file)
    assert str(file) in str(raised.value) and says in str(raised.value)


def test_callers(tmp_path: Path) -> None:
    mine, wide, short = (tmp_path / name for name in ("mine", "wide", "short"))
    mine.write_text("a-token-of-mine-1234\n")
    wide.write_text("another-token-56789")
    short.write_text("guess")
    tokens = [{"owner": "me", "file": mine}, {"owner": "noc", "file": wide, "networks": ["10.0.0.0/8"]}]
    callers = Callers(Api.model_validate({"tokens": tokens}))
    local = callers.caller("127.0.0.1", None)
    assert local.owner == "local" and local.may_ask_for("10.1.2.3")
    me = callers.caller("10.1.2.3", "Bearer a-token-of-mine-1234")
    assert me.owner == "me" and me.may_ask_for("10.1.2.3") and not me.may_ask_for("10.1.2.4")
    noc = callers.caller("192.0.2.1", "bearer another-token-56789")
    assert noc.may_ask_for("10.9.9.9") and not noc.may_ask_for("192.0.2.1") and not noc.may_ask_for("::1")
    with pytest.raises(UnknownToken):
        callers.caller("127.0.0.1", "Bearer")
    for header in (None, "Bearer wrong", "Bearer ", "Basic a-token-of-mine-1234", "Bearer ä"):
        with pytest.raises(UnknownToken):
            callers.caller("10.1.2.3", header)
    with pytest.raises(UsageError, match="less than 16 characters"):
        Callers(Api.model_validate({"tokens": [{"owner": "x", "file": short}]}))
    with pytest.raises(UsageError, match="cannot be read"):
        Callers(Api.model_validate({"tokens": [{"owner": "x", "file": tmp_path / "none"}]}))


def test_a_lab_lets_its_hosts_ask_for_themselves() -> None:
    config = Api.model_validate({"address": "10.0.0.254", "insecure": True, "allow_from": ["10.0.0.0/24"]})
    callers = Callers(config)
    host = callers.caller("10.0.0.1", None)
    assert host.may_ask_for("10.0.0.1") and not host.may_ask_for("10.0.0.2")
    with pytest.raises(NotYours):
        callers.caller("10.0.1.1", None)


def test_who_asks_too_often_waits_and_others_do_not() -> None:
    callers = Callers(Api(requests_per_s=10))
    for _ in range(20):
        callers.spend("127.0.0.1", 5.0)
    with pytest.raises(TooMany):
        callers.spend("127.0.0.1", 5.0)
    callers.spend("127.0.0.2", 5.0)
    callers.spend("127.0.0.1", 5.2)
    assert callers.refused == 1
