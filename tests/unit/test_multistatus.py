"""Answers of WebDAV for many names: as servers send them, in pieces of any length, and with bounds."""

import tracemalloc
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpx.endpoints.web import bounded_xml
from mpx.endpoints.web.multistatus import DavEntry, MultiStatus, MultiStatusError

APACHE = b"""<?xml version="1.0" encoding="utf-8"?>
<D:multistatus xmlns:D="DAV:" xmlns:ns0="DAV:">
<D:response xmlns:lp1="DAV:" xmlns:lp2="http://apache.org/dav/props/">
<D:href>/dav/a%20folder/</D:href>
<D:propstat>
<D:prop>
<lp1:resourcetype><D:collection/></lp1:resourcetype>
<lp1:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</lp1:getlastmodified>
<lp1:getetag>"1000-5f"</lp1:getetag>
</D:prop>
<D:status>HTTP/1.1 200 OK</D:status>
</D:propstat>
<D:propstat>
<D:prop><ns0:getcontentlength/></D:prop>
<D:status>HTTP/1.1 404 Not Found</D:status>
</D:propstat>
</D:response>
<D:response xmlns:lp1="DAV:" xmlns:lp2="http://apache.org/dav/props/">
<D:href>/dav/a%20folder/file</D:href>
<D:propstat>
<D:prop>
<lp1:resourcetype/>
<lp1:getcontentlength>12345</lp1:getcontentlength>
<lp1:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</lp1:getlastmodified>
<lp1:getetag>"3039-5f"</lp1:getetag>
<lp2:executable>F</lp2:executable>
<D:lockdiscovery><D:activelock><D:lockroot><D:href>/other</D:href></D:lockroot></D:activelock></D:lockdiscovery>
</D:prop>
<D:status>HTTP/1.1 200 OK</D:status>
</D:propstat>
</D:response>
</D:multistatus>
"""
OF_APACHE = [
    DavEntry("/dav/a%20folder/", is_folder=True, modified_s=784111777, etag='"1000-5f"'),
    DavEntry("/dav/a%20folder/file", size_bytes=12345, modified_s=784111777, etag='"3039-5f"'),
]
HREFS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp", "Cn"]), max_size=30
)
ENTRIES = st.builds(
    DavEntry,
    HREFS,
    is_folder=st.booleans(),
    size_bytes=st.none() | st.integers(0, 2**63 - 1),
    etag=HREFS,
    checksums=HREFS,
    quota_available_bytes=st.none() | st.integers(0, 2**63 - 1),
    status=st.none() | st.integers(100, 599),
    description=HREFS,
)


def read(data: bytes, piece_bytes: int = 1 << 30) -> list[DavEntry]:
    parser = MultiStatus()
    pieces = [data[at : at + piece_bytes] for at in range(0, len(data), piece_bytes)]
    return [entry for piece in pieces for entry in parser.feed(piece)] + parser.close()


def answer(inner: str) -> bytes:
    return f'<multistatus xmlns="DAV:" xmlns:x="urn:x">{inner}</multistatus>'.encode()


def file(properties: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    propstat = f"<propstat><prop>{properties}</prop><status>{status}</status></propstat>"
    return answer(f"<response><href>/x</href>{propstat}</response>")


# --- what servers send -----------------------------------------------------------------------------


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 30])
def test_a_listing_of_apache(piece_bytes: int) -> None:
    assert read(APACHE, piece_bytes) == OF_APACHE
    assert read(b"\r\n \t\n" + APACHE, piece_bytes) == OF_APACHE


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"<?xml version='1.0' encoding='no-such'?>"])
def test_all_is_taken_for_utf_8(begin: bytes) -> None:
    one = "<response><href>/\u00e9</href></response>"
    assert read(begin + answer(one), 1) == [DavEntry("/\u00e9")]
    with pytest.raises(MultiStatusError, match="invalid token"):
        read(answer(one).decode().encode("utf-16"))


@pytest.mark.parametrize(
    "name",
    [
        b"\xff", b"\xc3", b"\xe2\x82", b"\xf4\x8f\xbf", b"a\xffb\xc3\xa9", b"\x01\x0b\x1f\x7f", b"\0",
        b"\xed\xa0\x80", bytes(range(0x80, 0x100)), "\u20ac\ufffe\uffff\ufeff".encode(),
        "\U0010ff00\U0010ffff\U0010feff".encode(),
    ],
)  # fmt: skip
def test_names_that_xml_cannot_hold(name: bytes) -> None:
    data = answer("<response><href>/NAME</href></response>" * 2).replace(b"NAME", name)
    for piece_bytes in (1, 1 << 30):
        assert read(data, piece_bytes) == [DavEntry("/" + name.decode("utf-8", "surrogateescape"))] * 2


def test_entries_come_as_soon_as_they_are_complete() -> None:
    parser = MultiStatus()
    end = APACHE.index(b"</D:response>") + len(b"</D:response>")
    assert parser.feed(APACHE[: end - 1]) == []
    assert parser.feed(APACHE[end - 1 : end + 5]) == OF_APACHE[:1]
    assert parser.feed(APACHE[end + 5 :]) + parser.close() == OF_APACHE[1:]


def test_what_failed_in_a_folder() -> None:
    told = "<responsedescription> locked by u </responsedescription>"
    failed = f"<response><href>/a</href><href>/b</href><status>HTTP/1.1 423 Locked</status>{told}</response>"
    other = (
        "<response><href>/c</href><status>403</status></response><responsedescription>x</responsedescription>"
    )
    assert read(answer(failed + other)) == [
        DavEntry("/a", status=423, description="locked by u"),
        DavEntry("/b", status=423, description="locked by u"),
        DavEntry("/c", status=403),
    ]
    (entry,) = read(answer(f"<response><responsedescription>{'x' * 5000}</responsedescription></response>"))
    assert entry == DavEntry("", description="x" * 1000)


@pytest.mark.parametrize(
    ("properties", "checksums"),
    [
        ("<x:checksums><x:checksum>SHA1:a &amp; MD5:b</x:checksum></x:checksums>", "SHA1:a & MD5:b"),
        ("<x:checksums><x:checksum>a</x:checksum><x:checksum>b</x:checksum></x:checksums>", "a b"),
        ("<x:checksums>adler32=1,md5=b</x:checksums>", "adler32=1,md5=b"),
        ("<checksum xmlns='http://www.dcache.org/2013/webdav'>adler32=1</checksum>", "adler32=1"),
        ("<x:checksums/>", ""),
        ("<x:y><x:checksums>a</x:checksums></x:y>", ""),
        ("<x:nochecksum>a</x:nochecksum>", ""),
    ],
)
def test_checksums(properties: str, checksums: str) -> None:
    assert read(file(properties)) == [DavEntry("/x", checksums=checksums)]


@pytest.mark.parametrize(
    "size", ["-1", "+1", "1_0", "1.0", "0x1", "\u0663", "9" * 19, "9" * 5000, "", "a", "1 2"]
)
def test_sizes_that_no_file_has(size: str) -> None:
    told = f"<getcontentlength>{size}</getcontentlength><quota-available-bytes>{size}</quota-available-bytes>"
    assert read(file(told)) == [DavEntry("/x")]


def test_room_and_times() -> None:
    told = "<quota-available-bytes> 7\n</quota-available-bytes><getlastmodified>{}</getlastmodified>"
    (entry,) = read(file(told.format("2024-01-02T03:04:05.5Z")))
    assert (entry.quota_available_bytes, entry.modified_s) == (7, 1704164645.5)
    for text in ("soon", "Sun, 31 Feb 1994 08:49:37 GMT", ""):
        assert read(file(told.format(text)))[0].modified_s is None


@pytest.mark.parametrize(
    "status", ["HTTP/1.1 404 Not Found", "HTTP/1.1 403 Forbidden", "", "200x", "2000", "OK"]
)
def test_properties_that_a_server_does_not_have(status: str) -> None:
    told = (
        "<resourcetype><collection/></resourcetype><getcontentlength>1</getcontentlength><getetag>x</getetag>"
    )
    assert read(file(told, status)) == [DavEntry("/x")]
    assert read(file(told, "HTTP/2 200")) == [DavEntry("/x", True, 1, etag="x")]


def test_properties_of_one_status_are_not_those_of_another() -> None:
    had = "<propstat><prop><getetag>x</getetag></prop><status>HTTP/1.1 200 OK</status></propstat>"
    lacking = "<propstat><prop><getcontentlength>7</getcontentlength></prop>{}</propstat>"
    for status in ("", "<status>HTTP/1.1 404 Not Found</status>"):
        other = lacking.format(status)
        for told in (had + other, other + had, other + had + other):
            assert read(answer(f"<response><href>/x</href>{told}</response>")) == [DavEntry("/x", etag="x")]


def test_elements_count_where_they_belong_only() -> None:
    told = "<x:getetag>a</x:getetag><x:y><getetag>b</getetag></x:y><collection/><href>/y</href>"
    assert read(file(told + "<x:resourcetype><collection/></x:resourcetype>")) == [DavEntry("/x")]
    assert read(answer("<x:response><href>/x</href></x:response><x:y><response/></x:y>")) == []


def test_one_response_says_nothing_of_the_next() -> None:
    both = file("<getetag>x</getetag>").replace(
        b"</multistatus>", b"<response><href>/y</href></response></multistatus>"
    )
    assert read(both) == [DavEntry("/x", etag="x"), DavEntry("/y")]


def test_white_space_that_lays_out_is_no_part_of_an_href() -> None:
    told = "<response><href>\n  /a b \n </href></response><response><href>/a </href></response>"
    assert [entry.href for entry in read(answer(told))] == ["/a b", "/a "]


@given(st.lists(ENTRIES, max_size=4), st.integers(1, 300))
@example([DavEntry("/\U0001f600&<]]>")], 1)
def test_what_another_program_writes_is_read_the_same(entries: list[DavEntry], piece_bytes: int) -> None:
    assert read(written(entries), piece_bytes) == entries


def written(entries: list[DavEntry]) -> bytes:
    root = ElementTree.Element("{DAV:}multistatus")
    for entry in entries:
        response = ElementTree.SubElement(root, "{DAV:}response")
        ElementTree.SubElement(response, "{DAV:}href").text = entry.href
        propstat = ElementTree.SubElement(response, "{DAV:}propstat")
        ElementTree.SubElement(propstat, "{DAV:}status").text = "HTTP/1.1 200 OK"
        prop = ElementTree.SubElement(propstat, "{DAV:}prop")
        if entry.is_folder:
            kind = ElementTree.SubElement(prop, "{DAV:}resourcetype")
            ElementTree.SubElement(kind, "{DAV:}collection")
        for name, value in (
            ("{DAV:}getcontentlength", entry.size_bytes),
            ("{DAV:}getetag", entry.etag),
            ("{http://owncloud.org/ns}checksums", entry.checksums),
            ("{DAV:}quota-available-bytes", entry.quota_available_bytes),
        ):
            if value is not None:
                ElementTree.SubElement(prop, name).text = str(value)
        if entry.status is not None:
            ElementTree.SubElement(response, "{DAV:}status").text = f"HTTP/1.1 {entry.status} Reason"
        ElementTree.SubElement(response, "{DAV:}responsedescription").text = entry.description
    text: bytes = ElementTree.tostring(root, "utf-8")
    return text


# --- what is refused -------------------------------------------------------------------------------


@given(st.integers(0, len(APACHE) - len("</D:multistatus>\n")))
def test_an_answer_that_is_cut_off(size_bytes: int) -> None:
    with pytest.raises(MultiStatusError, match="not XML that can be read"):
        read(APACHE[:size_bytes])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no element found"),
        (b"<html><body>log in</body></html>", "no answer for many names, but 'html'"),
        (b"<multistatus xmlns='DAV'/>", "no answer for many names, but 'multistatus'"),
        (b"<m:multistatus/>", "unbound prefix"),
        (answer("<response></href>"), "mismatched tag"),
        (b"<multistatus xmlns='DAV:'><\xff/></multistatus>", "invalid token"),
        (answer("&other;"), "undefined entity"),
        (APACHE + b"<x/>", "junk after document element"),
        (b"<!DOCTYPE multistatus><multistatus xmlns='DAV:'/>", "document type declaration"),
        (b"<!DOCTYPE x [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]><x>&b;</x>", "document type declaration"),
        (b"<!DOCTYPE x SYSTEM 'http://127.0.0.1/x'><x/>", "document type declaration"),
    ],
)
def test_what_is_no_answer_for_many_names(data: bytes, why: str) -> None:
    for piece_bytes in (3, 1 << 30):
        with pytest.raises(MultiStatusError, match=why):
            read(data, piece_bytes)


def test_a_declaration_of_types_is_refused_when_it_begins() -> None:
    with pytest.raises(MultiStatusError, match="document type declaration"):
        MultiStatus().feed(b"<!DOCTYPE x [")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [(answer("<response>") + b"</x>", "mismatched tag"), (b"<html>", "no answer for many names")],
)
def test_after_an_error_there_is_no_end_without_one(wrong: bytes, why: str) -> None:
    parser = MultiStatus()
    for ask in (lambda: parser.feed(wrong), lambda: parser.feed(b"</html>"), parser.close):
        with pytest.raises(MultiStatusError, match=why):
            ask()


@pytest.mark.parametrize(
    ("begin", "part", "why"),
    [
        ("<response>", "<a>", f"elements in more than {bounded_xml.MOST_DEPTH} others"),
        ("<response>", "<a/>", f"more than {bounded_xml.MOST_ELEMENTS} elements"),
        ("", "<a/>", f"more than {bounded_xml.MOST_ELEMENTS} elements"),
        ("<response>", "<a {}/>", f"more than {bounded_xml.MOST_ATTRIBUTES} attributes"),
        (
            "<response><href>",
            "abcdefghij",
            f"a response of more than {bounded_xml.MOST_RECORD_BYTES} bytes",
        ),
        ("<response><propstat><prop><x:checksums>", "abcdefghij", "a response of more than"),
        ("<response><a b='", "abcdefghij", "a tag or a comment of more than"),
        ("<!--", "abcdefghij", "a tag or a comment of more than"),
        ("<", "abcdefghij", "a tag or a comment of more than"),
    ],
)
def test_what_is_too_large(begin: str, part: str, why: str) -> None:
    part = part.format(" ".join(f"a{number}=''" for number in range(bounded_xml.MOST_ATTRIBUTES + 1)))
    parser = MultiStatus()
    parser.feed(answer(begin).removesuffix(b"</multistatus>"))
    pieces = 2 * bounded_xml.MOST_RECORD_BYTES // (1000 * len(part)) + 10
    with pytest.raises(MultiStatusError, match=why):
        for _ in range(pieces):
            parser.feed(part.encode() * 1000)


@pytest.mark.parametrize(
    "part",
    [
        "<response><href>/</href><a{}/></response>",
        "<response a{}=''/>",
        "<response xmlns:a{}='x'/>",
        "<response xmlns='u:{}'/>",
    ],
)
def test_names_that_are_ever_different(part: str) -> None:
    parser = MultiStatus()
    parser.feed(answer("").removesuffix(b"</multistatus>"))
    with pytest.raises(MultiStatusError, match="different names"):
        for number in range(2 * bounded_xml.MOST_NAMES):
            parser.feed(part.format(number).encode())


def test_the_largest_response_is_read_and_does_not_count_for_the_next() -> None:
    inner = "<response><href>" + "x" * (bounded_xml.MOST_RECORD_BYTES - 1000) + "</href></response>"
    many = "<response><href>y</href>" + "<a/>" * (bounded_xml.MOST_ELEMENTS - 10) + "</response>"
    assert [entry.href[0] for entry in read(answer(3 * inner + 3 * many), 9999)] == ["x"] * 3 + ["y"] * 3


def test_text_between_responses_is_not_kept() -> None:
    parser = MultiStatus()
    parser.feed(answer("").removesuffix(b"</multistatus>"))
    some = b"x" * 100_000
    tracemalloc.start()
    try:
        for _ in range(100):
            assert parser.feed(some) == []
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert parser.feed(b"<response><href>/x</href></response></multistatus>") == [DavEntry("/x")]
    assert parser.close() == []


@given(
    st.lists(
        st.sampled_from(
            [b"<", b">", b"</", b"/>", b"D:response", b"D:href", b" xmlns='", b"'", b"&amp;", b"\xc3"]
        )
    )
)
def test_any_bytes_are_read_or_refused(parts: list[bytes]) -> None:
    try:
        read(APACHE[:400] + b"".join(parts) + APACHE[400:], 100)
    except MultiStatusError as error:
        assert len(str(error)) < 300
