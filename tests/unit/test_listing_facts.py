"""Lines of facts (RFC 3659): what they say of a name, and that no line is read as what it is not."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx.endpoints.ftp.facts import entry_info, kind_of
from mpx.endpoints.ftp.wire import parse_facts
from mpx.engine.endpoint import Kind

VALUES = st.text(st.characters(exclude_characters="; \r\n"), max_size=10)
NAMES = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(st.sampled_from(["type", "size", "modify", "unique", "unix.mode"]), VALUES), NAMES)
def test_facts_and_the_raw_name_come_back(facts: dict[str, str], name: str) -> None:
    line = "".join(f"{key.title()}={value};" for key, value in facts.items()) + f" {name}"
    entry = parse_facts(line)
    assert (entry.facts, entry.name, entry.is_sure) == (facts, name, True)


@given(st.text())
def test_any_line_is_read_or_refused(line: str) -> None:
    for is_indented in (False, True):
        try:
            entry_info(parse_facts(line, is_indented=is_indented))
        except ValueError:
            continue


@pytest.mark.parametrize(
    "line",
    ["", "name", "type=file;", "type=file;size=5;modi", "type=file;size=5;\tname", "=x; name",
     "-rw-r--r--   1 ftp ftp   5 Jan 01 12:00 two", "type=file;;size 5; x"],
)  # fmt: skip
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of facts"):
        parse_facts(line)


def test_blanks_that_belong_to_the_name_or_to_a_target() -> None:
    assert parse_facts("type=file;  two").name == " two"
    assert parse_facts(" a b").name == "a b"  # no facts at all
    entry = parse_facts("type=OS.unix=slink:/a b;size=5; name")
    assert (entry.name, entry.is_sure) == ("name", False)
    assert entry_info(entry).link_target == "/a b"
    assert not parse_facts("type=file;size=5 name").is_sure


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("file", Kind.FILE), ("FILE", Kind.FILE), ("dir", Kind.FOLDER), ("cDir", Kind.FOLDER),
        ("slink", Kind.LINK), ("OS.unix=slink:", Kind.LINK), ("OS.unix=slink:x", Kind.LINK),
        ("OS.unix=symlink", Kind.LINK), ("OS.unix=chr-1/3", Kind.OTHER), ("OS.unix=pipe", Kind.OTHER),
        ("OS.unix=socket", Kind.OTHER), ("unknown", None), ("", None), ("OS.other=x", None), ("files", None),
    ],
)  # fmt: skip
def test_kinds(told: str, kind: Kind | None) -> None:
    assert kind_of(parse_facts(f"type={told};size=3; x")) is kind


def test_links_and_their_targets() -> None:
    for line, target in (
        ("type=OS.unix=symlink;size=3; x", ""),
        ("type=OS.unix=slink:;size=3; x", ""),
        ("type=OS.unix=slink:to/%41;size=3; x", "to/%41"),
        ("type=file;size=3;UNIX.slink=to/%41; x", "to/A"),
    ):
        info = entry_info(parse_facts(line))
        assert (info.kind, info.link_target) == (Kind.LINK, target)


@pytest.mark.parametrize("size", ["", "size=;", "size=-1;", "size=x;", "size=²;", f"size={'9' * 5000};"])
def test_a_size_that_nobody_could_have_is_unknown(size: str) -> None:
    assert entry_info(parse_facts(f"type=file;{size} x")).size_bytes is None
    assert entry_info(parse_facts(f"type=dir;{size} x")).size_bytes == 0


def test_what_is_unique() -> None:
    assert entry_info(parse_facts("type=dir;unique=fe00g1; x")).identity == "fe00g1"
    assert entry_info(parse_facts("type=dir;unique=; x")).identity is None
