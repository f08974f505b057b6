"""What S3 answers in XML, keys as names, and the sizes of parts."""

import hashlib
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpx.endpoints.s3.answer import S3Answer, S3AnswerError
from mpx.endpoints.s3.keys import child_of_key, decoded_key, prefix_of
from mpx.endpoints.s3.parts import LEAST_PART_BYTES, MOST_PARTS, part_bytes_of
from mpx.endpoints.s3.stored_sums import composite_etag, crc32_hex, crc32_text, whole_crc32
from mpx.endpoints.s3.uploads import StoredPart
from mpx.endpoints.web import bounded_xml
from mpx.endpoints.web.names import HrefError
from mpx.engine import checksum

LISTING = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix>a/</Prefix>
<KeyCount>2</KeyCount><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>
<Contents><Key>a/b+c%2Bd</Key><LastModified>2026-11-29T07:30:04.000Z</LastModified><ETag>&quot;0f&quot;</ETag>
<Size>50</Size><Owner><ID>me</ID></Owner><StorageClass>STANDARD</StorageClass></Contents>
<CommonPrefixes><Prefix>a/sub/</Prefix></CommonPrefixes></ListBucketResult>"""


def test_a_listing() -> None:
    answer = S3Answer(LISTING)
    assert answer.root == "ListBucketResult" and answer.fields["IsTruncated"] == "false"
    (entry,) = answer.named("Contents")
    assert (entry["Key"], entry["Size"], entry["ETag"]) == ("a/b+c%2Bd", "50", '"0f"')
    assert answer.named("CommonPrefixes") == [{"Prefix": "a/sub/"}]
    assert child_of_key(decoded_key(entry["Key"]), "a/") == "b c+d"


@given(st.binary(max_size=200))
@example(b" \n<Error><Code>InternalError</Code></Error>")
def test_any_bytes(body: bytes) -> None:
    try:
        answer = S3Answer(body)
    except S3AnswerError:
        return
    assert answer.root


@given(st.integers(0, len(LISTING) - 2))
def test_what_is_cut_off_is_no_answer(end: int) -> None:
    with pytest.raises(S3AnswerError):
        S3Answer(LISTING[:end])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><Error/>", "document type"),
        (b"<R>" + b"<a>" * (bounded_xml.MOST_DEPTH + 1), "elements in more than"),
        (b"<R><a>" + b"<b/>" * (bounded_xml.MOST_ELEMENTS + 1), "elements"),
        (b"<R><a>" + b"x" * (bounded_xml.MOST_RECORD_BYTES + 99999), "a record of more than"),
    ],
)
def test_what_is_too_large(body: bytes, why: str) -> None:
    with pytest.raises(S3AnswerError, match=why):
        S3Answer(body)


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(KEYS, KEYS)
def test_keys_are_names_or_errors(folder: str, rest: str) -> None:
    prefix = prefix_of(f"/{folder}")
    try:
        name = child_of_key(prefix + rest, prefix)
    except HrefError:
        bare = rest.removesuffix("/")
        assert bare in ("", ".", "..") or "/" in bare or "\0" in bare
        return
    assert (name is None) == (rest == "")
    assert name is None or (name not in ("", ".", "..") and not {"/", "\0"} & set(name))


@pytest.mark.parametrize(
    ("key", "why"),
    [("a/..", "'..' as a name"), ("a//", "empty part"), ("b/c", "outside"), ("a/./", "'.' as a name")],
)
def test_keys_that_are_no_names(key: str, why: str) -> None:
    with pytest.raises(HrefError, match=why):
        child_of_key(key, "a/")


@given(st.integers(1, 5 << 40))
def test_parts_are_few_and_no_smaller_than_needed(size_bytes: int) -> None:
    part_bytes = part_bytes_of(size_bytes)
    assert part_bytes >= LEAST_PART_BYTES and part_bytes % (1 << 20) == 0
    assert -(-size_bytes // part_bytes) <= MOST_PARTS
    assert part_bytes == LEAST_PART_BYTES or (part_bytes - (1 << 20)) * MOST_PARTS < size_bytes


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=5))
def test_checksums_of_parts_put_together(pieces: list[bytes]) -> None:
    digests = [hashlib.md5(piece).digest() for piece in pieces]
    parts = [
        StoredPart(number, len(piece), f'"{digest.hex()}"', digest, zlib.crc32(piece))
        for number, (piece, digest) in enumerate(zip(pieces, digests, strict=True), 1)
    ]
    crc32 = whole_crc32(parts)
    assert crc32 == zlib.crc32(b"".join(pieces))
    assert crc32_hex(crc32_text(crc32)) == f"{crc32:08x}"
    assert composite_etag(parts) == f"{hashlib.md5(b''.join(digests)).hexdigest()}-{len(parts)}"


@given(st.binary(max_size=5000), st.integers(1, 6000))
def test_composed_md5_of_a_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, part_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("composed") / "file"
    path.write_bytes(data)
    digests = b"".join(
        hashlib.md5(data[i : i + part_bytes]).digest() for i in range(0, len(data), part_bytes)
    )
    with path.open("rb") as file:
        found = checksum.composed_md5(file.fileno(), len(data), part_bytes, lambda: False)
    assert found == hashlib.md5(digests).hexdigest()


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAA==-3", "é", "AAAAAAAA"])
def test_what_is_no_crc32(text: str) -> None:
    assert crc32_hex(text) is None
