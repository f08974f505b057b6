"""What of every option a pair can honour: what it cannot and was given by hand is refused, with a reason."""

from dataclasses import fields
from typing import Any

import pytest

from mpx.errors import UsageError
from mpx.location import Location, parse_location
from mpx.options import CopyOptions, flag_of
from mpx.report import Report
from mpx.transfer.fallback import within_mode_s
from mpx.transfer.refusals import check_options

HERE = "here"  # within this host
UP, DOWN = "up", "down"  # in MODE E
S_UP, S_DOWN, S_WHOLE = "up in MODE S", "down in MODE S", "down in MODE S without REST"
PAIRS = (HERE, UP, DOWN, S_UP, S_DOWN, S_WHOLE)
MODE_S = (S_UP, S_DOWN, S_WHOLE)

# For each option: a value given by hand, and the pairs that refuse it. What only bounds something is
# honoured where there is nothing to bound.
TABLE: list[tuple[str, Any, tuple[str, ...]]] = [
    ("recursive", True, ()),
    ("overwrite", "always", ()),
    ("links", "keep", ()),  # whether a server makes them is asked of the server
    ("dry_run", True, ()),
    ("files", 4, ()),
    ("files", 9, (UP, S_UP, S_WHOLE)),  # each takes a session, and there are eight
    ("streams", None, ()),  # auto
    ("streams", 1, (HERE,)),
    ("streams", 8, (HERE, S_UP, S_WHOLE)),
    ("streams", 9, (HERE, *MODE_S)),
    ("max_streams", 500, ()),
    ("max_sessions", 2, ()),
    ("tuner", "auto", (HERE,)),
    ("tuner", "paper", (HERE,)),  # in MODE S the report says that it cannot
    ("initial_streams", 8, (HERE,)),
    ("initial_streams", 9, (HERE, *MODE_S)),
    ("share", 4, (HERE,)),
    ("share", 1, (HERE,)),
    ("bandwidth_bps", 1e10, (HERE,)),
    ("history", True, ()),
    ("history", False, ()),
    ("congestion", "reno", (HERE,)),  # where no server can be told the report says so
    ("rate_bps", 1e6, ()),
    ("policy", "fast", (HERE,)),
    ("probe_first_s", 10.0, (HERE,)),
    ("transport", "mptcp", (HERE,)),
    ("block_size_bytes", 65536, (HERE, DOWN, *MODE_S)),
    ("checksum", "none", ()),  # whether a server offers one is asked of the server
    ("resume", True, (S_UP, S_WHOLE)),
    ("resume", False, ()),
    ("third_party", "only", PAIRS),
    ("third_party", "never", ()),
    ("remote_mpx", "/opt/mpx", (HERE, UP, DOWN, *MODE_S)),
    ("bootstrap", True, (HERE, UP, DOWN, *MODE_S)),
    ("bootstrap_once", True, (HERE, UP, DOWN, *MODE_S)),
    ("data_ports", "50000-50010", (HERE, UP, DOWN, *MODE_S)),
    ("encrypt", True, (HERE, UP, DOWN, *MODE_S)),
    ("dcau", False, (HERE, UP, DOWN, *MODE_S)),
    ("delegate", True, (HERE, UP, DOWN, *MODE_S)),
    ("server_subject", "/O=Grid/CN=dtn", (HERE, UP, DOWN, *MODE_S)),
    ("ca", "/etc/ca", (HERE, UP, DOWN, *MODE_S)),
    ("certificate", "/tmp/user.pem", (HERE, UP, DOWN, *MODE_S)),
    ("token_files", ("dtn.example.org=/tmp/token",), (HERE, UP, DOWN, *MODE_S)),
    ("send_token_to", ("*.example.org",), (HERE, UP, DOWN, *MODE_S)),
    ("profile", "one", (HERE, UP, DOWN, *MODE_S)),
    ("region", "eu-west-1", (HERE, UP, DOWN, *MODE_S)),
    ("endpoint_url", "https://s3.example.org", (HERE, UP, DOWN, *MODE_S)),
    ("sign_request", False, (HERE, UP, DOWN, *MODE_S)),
    ("request_payer", "requester", (HERE, UP, DOWN, *MODE_S)),
    ("globus_local", "11111111-1111-4111-8111-111111111111", (HERE, UP, DOWN, *MODE_S)),
    ("in_place", True, (HERE, DOWN, S_DOWN, S_WHOLE)),
    ("partial_prefix", "unfinished-", ()),
    ("connect_timeout_s", 5.0, ()),
    ("timeout_s", 5.0, (HERE,)),
    ("retries", 1, ()),
    ("port_range", "40000-40010", (HERE,)),
    ("source_ports", "40000-40010", (HERE,)),
    ("data_address", "127.0.0.1", (HERE,)),
    ("data_address", "192.0.2.7", PAIRS),
    ("data_address_from_server", True, (HERE,)),
    ("via", "gfal2", ()),  # which decides what is reached, before all that
    ("ipv4", True, ()),
    ("ipv6", True, ()),
    ("controller", "http://127.0.0.1:9", (HERE,)),  # whether it gives paths is asked of the controller
]
TOGETHER: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"tuner": "paper", "growth": 3.0}, (HERE,)),
    ({"probe_first_s": 10.0, "classifier": "knn-dtw"}, (HERE,)),
    ({"probe_first_s": 10.0, "probe_mode": "active"}, (HERE,)),
    ({"tuner": "paper", "chunk_time_s": 1.0}, (HERE,)),
    ({"certificate": "/tmp/user.pem", "key": "/tmp/user.key"}, (HERE, UP, DOWN, *MODE_S)),
    ({"streams": 9, "max_sessions": 9}, (HERE, S_UP, S_WHOLE)),
    ({"files": 9, "max_sessions": 9}, ()),
    ({"streams": 4, "source_ports": "40000-40002"}, (HERE, UP, *MODE_S)),
    ({"max_sessions": 2, "initial_streams": 3}, (HERE, *MODE_S)),
    ({"controller": "http://127.0.0.1:9", "paths": 2}, (HERE,)),
    ({"bootstrap": True, "remote_python": "python3.9"}, (HERE, UP, DOWN, *MODE_S)),
    ({"controller": "http://127.0.0.1:9", "require_controller": True}, (HERE,)),
]
NEVER: list[dict[str, Any]] = [
    {"growth": 2.0},
    {"key": "/tmp/user.key"},
    {"token_files": ("a b=/tmp/token",)},
    {"token_files": ("/tmp/one", "/tmp/two")},
    {"send_token_to": ("https://dtn.example.org",)},
    {"remote_python": "python3.9"},
    {"bootstrap": True, "remote_mpx": "mpx"},
    {"classifier": "knn-dtw"},
    {"probe_mode": "active"},
    {"probe_first_s": 5.0, "probe_mode": "active"},
    {"probe_first_s": 172800.0},
    {"bandwidth_bps": 1e9, "policy": "scavenger"},
    {"bandwidth_bps": 1e9, "controller": "http://127.0.0.1:9"},
    {"probe_first_s": 10.0, "probe_mode": "active", "classifier": "knn-dtw"},
    {"share": 8, "max_streams": 4},
    {"chunk_time_s": 3.0},
    {"streams": 4, "tuner": "auto"},
    {"streams": 4, "initial_streams": 4},
    {"streams": 4, "share": 2},
    {"streams": 4, "bandwidth_bps": 1e9},
    {"initial_streams": 4, "bandwidth_bps": 1e9},
    {"tuner": "paper", "share": 2},
    {"policy": "fast", "share": 2},
    {"policy": "scavenger", "share": 2},
    {"share": 0},
    {"initial_streams": 300},
    {"streams": 300},
    {"controller": "http://127.0.0.1:9", "transport": "mptcp"},
    {"congestion": ""},
    {"congestion": "CUBIC"},
    {"paths": 2},
    {"require_controller": True},
    {"controller": "http://127.0.0.1:9", "paths": 65},
]


def by_hand(given: dict[str, Any]) -> CopyOptions:
    return CopyOptions(**given, explicit=frozenset(given))


def honoured(pair: str, options: CopyOptions) -> Report:
    """Go through what a copy goes through; raises UsageError."""
    report = Report("a", "b")
    url = "/x" if pair == HERE else "ftp://127.0.0.1:1/x"
    uploads = pair in (UP, S_UP)
    check_options(options, parse_location(url), far_is_source=not uploads)
    if pair in MODE_S:
        within_mode_s(options, report, why="it is so", uploads=uploads, restarts=pair != S_WHOLE)
    return report


def test_no_option_is_forgotten() -> None:
    named = {name for name, _, _ in TABLE} | {name for given, _ in TOGETHER for name in given}
    assert named == {option.name for option in fields(CopyOptions) if option.metadata}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("given", "refusing"),
    [*(({name: value}, refusing) for name, value, refusing in TABLE), *TOGETHER],
    ids=str,
)
def test_given_by_hand(pair: str, given: dict[str, Any], refusing: tuple[str, ...]) -> None:
    options = by_hand(given)
    if pair not in refusing:
        honoured(pair, options)
        return
    with pytest.raises(UsageError) as refused:
        honoured(pair, options)
    said = str(refused.value)
    assert any(flag_of(name) in said or str(value) in said for name, value in given.items())


WEB, ROOT = ("http", "https", "dav", "davs"), ("root", "roots", "srm")
WEB_TLS, CAS = ("https", "davs"), ("https", "davs", "s3", *ROOT, "globus", "gsiftp")


@pytest.mark.parametrize(
    ("given", "schemes"),
    [
        ({"token_files": ("/tmp/token",)}, (*WEB, *ROOT)),
        ({"send_token_to": ("dtn.example.org",)}, WEB),
        ({"certificate": "/tmp/user.pem"}, (*WEB_TLS, *ROOT)),
        ({"certificate": "/tmp/user.pem", "key": "/tmp/user.key"}, (*WEB_TLS, *ROOT)),
        ({"ca": "/etc/ca"}, CAS),
        ({"encrypt": True}, ("globus", "gsiftp")),
        ({"globus_local": "11111111-1111-4111-8111-111111111111"}, ("globus",)),
        ({"endpoint_url": "https://s3.example.org"}, ("s3",)),
        ({"server_subject": "/O=Grid/CN=dtn"}, ("gsiftp",)),
        ({"remote_mpx": "/opt/mpx"}, ("ssh",)),
    ],
    ids=str,
)
def test_the_schemes_that_an_option_is_for(given: dict[str, Any], schemes: tuple[str, ...]) -> None:
    options, other = by_hand(given), Location("ftp", "/x", "host", 2811)
    for scheme in (*WEB, "s3", *ROOT, "globus", "gsiftp", "ssh", "mpx", "ftp"):
        place = Location(scheme, "/x", "host", 1094)
        if scheme in schemes:
            check_options(options, place, far_is_source=True)
            if scheme != "gsiftp":  # whose name of one server is refused between two
                check_options(options, other, far_is_source=False, near=place)
            continue
        with pytest.raises(UsageError) as refused:
            check_options(options, place, far_is_source=True)
        said = str(refused.value)
        assert said.startswith(tuple(flag_of(name) for name in given))
        assert said.endswith(f"is not possible here: it is for {', '.join(f'{each}://' for each in schemes)}")


@pytest.mark.parametrize("given", NEVER, ids=str)
def test_what_contradicts_itself(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--"):
        by_hand(given)


@pytest.mark.parametrize("pair", PAIRS)
def test_defaults_are_never_refused_and_said_where_they_cannot_be_had(pair: str) -> None:
    notes = honoured(pair, CopyOptions()).notes
    assert [note.startswith("using MODE S (it is so): at most 8 streams") for note in notes] == [
        True for _ in range(pair in MODE_S)
    ]


def test_what_mode_s_makes_of_the_defaults() -> None:
    report = Report("a", "b")
    up = within_mode_s(CopyOptions(), report, why="", uploads=True, restarts=True)
    down = within_mode_s(CopyOptions(), report, why="", uploads=False, restarts=True)
    assert (up.resume, down.resume) == (False, True)
    assert (up.max_streams, down.max_streams) == (8, 8)
    few = within_mode_s(CopyOptions(max_streams=2), report, why="", uploads=False, restarts=True)
    assert few.max_streams == 2
