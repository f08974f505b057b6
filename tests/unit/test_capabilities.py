"""What each scheme can: stated once, shown to users as it is, and what all above the carriers decides by."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpx.endpoints.ftp.announced import announced
from mpx.endpoints.ftp.capabilities import SCHEMES as OF_FTP
from mpx.endpoints.schemes import SCHEMES, capabilities_of
from mpx.endpoints.sftp.capabilities import SFTP
from mpx.engine import checksum
from mpx.engine.capabilities import CHECKSUMS, Capabilities, PartsUp, RangeReads, ThirdParty
from mpx.errors import UsageError
from mpx.location import parse_location

ROOT = Path(__file__).parents[2]
DECIDE = ("transfer", "probing", "commands")
THE_TABLE = ("registry.py", "carriers.py")  # of transfer: which endpoint and which carrier serve a scheme
HEADER = (
    "| | read from an offset | parts of a file up | an interrupted upload goes on with | streams change in "
    "mid-copy | straight to its like by | checksums | named in one step | links |"
)
ASKED = {True: "yes", False: "no", None: "asked"}
GOES_ON = {
    PartsUp.NONE: "whole files",
    PartsUp.TRIED: "what has arrived, or whole files",
    PartsUp.IN_TURN: "what has arrived",
    PartsUp.OFFSETS: "what has arrived",
    PartsUp.NUMBERED: "finished parts",
}


def row(name: str, can: Capabilities) -> str:
    """The line of the table in docs/sites.md."""
    cells = (
        name,
        can.reads.value,
        can.parts_up.value,
        GOES_ON[can.parts_up],
        ASKED[can.tunable],
        straight(can.third_party),
        "all" if can.checksums == CHECKSUMS else ", ".join(can.checksums) or "-",
        ASKED[can.renames],
        ASKED[can.links],
    )
    return f"| {' | '.join(cells)} |"


def straight(third_party: ThirdParty | None) -> str:
    if third_party is None:
        return "-"
    ways = f" ({', '.join(third_party.ways)})" if third_party.ways else ""
    return f"- ({third_party.why_not})" if third_party.why_not else third_party.protocol + ways


def test_users_see_what_each_scheme_can() -> None:
    lines = (ROOT / "docs/sites.md").read_text().splitlines()
    begin = lines.index(HEADER) + 2
    others = {"file": "this host", "srm": "`srm://`, and all by `--via gfal2`"}
    rows = [row(others.get(scheme, f"`{scheme}://`"), can) for scheme, can in SCHEMES.items()]
    assert lines[begin : lines.index("", begin)] == [*rows, row("`ssh://` by SFTP", SFTP)]


def test_every_scheme_that_is_read_has_an_entry() -> None:
    with pytest.raises(UsageError) as told:
        parse_location("gopher://host/name")
    servers = str(told.value).rpartition("file:, ")[2].split(", ")
    assert {*servers, "file://"} == {f"{scheme}://" for scheme in SCHEMES}
    assert capabilities_of(parse_location("name")).is_here


def test_every_checksum_has_its_name() -> None:
    assert set(CHECKSUMS) == set(checksum.DIGITS)


# --- nobody above asks for a scheme --------------------------------------------------------------------


def asked_for(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that compare a scheme with something, or look it up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Subscript | ast.Match) and any(
            isinstance(each, ast.Attribute) and each.attr == "scheme" for each in ast.walk(node)
        ):
            yield node.lineno


@pytest.mark.parametrize("room", DECIDE)
def test_no_decision_asks_for_a_scheme(room: str) -> None:
    files = [path for path in (ROOT / "mpx" / room).rglob("*.py") if path.name not in THE_TABLE]
    assert files
    found = [f"{path.name}:{line}" for path in files for line in asked_for(ast.parse(path.read_bytes()))]
    assert found == []


@pytest.mark.parametrize(
    "text", ['end.location.scheme == "s3"', "a.scheme in WEB", "by[a.scheme]", "{a.scheme, b} <= WEB.keys()"]
)
def test_what_asks_for_a_scheme(text: str) -> None:
    assert list(asked_for(ast.parse(text))) == [1]
    assert list(asked_for(ast.parse('f"{a.scheme}://"'))) == []


# --- what servers of FTP announce ----------------------------------------------------------------------


def test_a_server_that_announces_nothing_can_little() -> None:
    found = announced(OF_FTP["ftp"], {}, "host")
    assert (found.reads, found.parts_up) == (RangeReads.NONE, PartsUp.BLOCKS)
    assert not (found.sends_parts or found.checksums or found.is_faithful or found.admits_many)
    assert found.why_not_congestion is None
    assert found.third_party == OF_FTP["ftp"].third_party  # which takes no feature


def test_what_a_server_announces_it_can() -> None:
    features = {"REST": "STREAM", "ERET": "", "ESTO": "", "MPX-CONGESTION": "cubic bbr", "MPX-SINK": ""}
    found = announced(OF_FTP["mpx"], {**features, "CKSM": "ADLER32:10;MD5:10;", "XSHA1": ""}, "host")
    assert (found.reads, found.parts_up) == (RangeReads.ASKED, PartsUp.OFFSETS)
    assert found.sends_parts and found.is_faithful and found.admits_many
    assert set(found.checksums) == {"adler32", "md5", "sha1"}
    assert set(found.part_checksums) == {"adler32", "md5"}
    assert found.congestions == ("cubic", "bbr") and found.why_not_congestion
    assert not found.why_not_congestion("bbr") and "reno" in found.why_not_congestion("reno")


@pytest.mark.parametrize("scheme", ["mpx", "ssh"])
def test_without_tickets_nothing_goes_straight(scheme: str) -> None:
    best = OF_FTP[scheme]
    assert announced(best, {"MPX-TARGET": ""}, "host").third_party == best.third_party
    missing = announced(best, {}, "host").third_party
    assert missing and best.third_party
    assert missing.protocol == best.third_party.protocol and "no mpx at host" in missing.why_not
