"""Copies to and from S3: sizes, names, trees, pipes; each by moto and by SeaweedFS."""

import json
import os
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from s3.buckets import Bucket
from sites import make
from web.servers.moto import PAGE, MotoSite

from mpx.endpoints.s3.parts import WHOLE_BYTES

SIZES = [0, 1, WHOLE_BYTES, WHOLE_BYTES + 1]
KEYS = [
    "with blanks",
    "a+b",
    "50%20off",
    "a#b?c",
    "it's \"&<>",
    "ü/日本",
    "~*;=:,@$",
    "x" * 200,
]


@pytest.mark.parametrize("size", SIZES)
def test_what_is_to_replace_nothing_is_not_taken_for_what_others_have_put_there(
    any_bucket: Bucket, tmp_path: Path, size: int
) -> None:
    source = make(tmp_path / "source", size)
    copied(mpx("copy", "--overwrite", "never", source, f"{any_bucket.url}key"))
    assert any_bucket.get("key") == source.read_bytes()


@pytest.mark.parametrize("size", SIZES)
def test_there_and_back(any_bucket: Bucket, tmp_path: Path, size: int) -> None:
    source = make(tmp_path / "source", size)
    up = mpx("copy", source, f"{any_bucket.url}folder/key", "--report", tmp_path / "up.json")
    copied(up)
    assert any_bucket.get("folder/key") == source.read_bytes()
    assert any_bucket.keys() == {"folder/key"} and not any_bucket.uploads()
    copied(mpx("copy", f"{any_bucket.url}folder/key", tmp_path / "back", "--report", tmp_path / "down.json"))
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    for name in ("up.json", "down.json"):
        report = json.loads((tmp_path / name).read_text())
        assert sum(report["checksum"]["bytes"].values()) == size, report["checksum"]


def test_names(any_bucket: Bucket, tmp_path: Path) -> None:
    keys = (
        KEYS if isinstance(any_bucket.site, MotoSite) else [*KEYS, "line\nfeed"]
    )  # which moto does not take
    for number, key in enumerate(keys):
        any_bucket.put(f"tree/{key}", str(number).encode())
    copied(mpx("copy", "-r", f"{any_bucket.url}tree", tmp_path / "tree"))
    for number, key in enumerate(keys):
        assert (tmp_path / "tree" / key).read_text() == str(number)
    copied(mpx("copy", "-r", tmp_path / "tree", f"{any_bucket.url}again"))
    assert any_bucket.keys() == {f"{top}/{key}" for top in ("tree", "again") for key in keys}
    assert mpx("copy", "-r", tmp_path / "tree", f"{any_bucket.url}again").out.startswith("nothing to copy")


def test_a_tree_of_several_pages(bucket: Bucket, tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(3 * PAGE)]
    for name in names:
        bucket.put(f"many/{name}", b"")
    bucket.put("many/below/one", b"1")
    assert mpx("list", f"{bucket.url}many").out.split() == [*names, "below/"]


def test_keys_that_are_no_names_of_files(bucket: Bucket, tmp_path: Path) -> None:
    for key in ("t/fine", "t/../up", "t/./here", "t//odd", "t/", "t/folder/", "/lead"):
        bucket.put(key, b"")
    done = mpx("copy", "-r", f"{bucket.url}t", tmp_path / "t")
    assert done.code == 10 and done.err.count("mpx: not copied") == 3, done.err
    assert {path.name for path in (tmp_path / "t").rglob("*")} == {"fine", "folder"}
    assert not (tmp_path / "up").exists()
    above = mpx("list", bucket.url)
    assert above.code == 10 and "'/'" in above.err, above
    refused(mpx("copy", f"{bucket.url}t/../up", tmp_path / "x"), 2, "..")


def test_a_pipe(any_bucket: Bucket, tmp_path: Path) -> None:
    data = os.urandom(WHOLE_BYTES + 5)
    copied(mpx("copy", "/dev/stdin", f"{any_bucket.url}long", stdin=data))
    copied(mpx("copy", "/dev/stdin", f"{any_bucket.url}short", stdin=data[:77]))
    assert any_bucket.get("long") == data and any_bucket.get("short") == data[:77]


def test_empty_folders_are_not_kept(bucket: Bucket, tmp_path: Path) -> None:
    """Which is told once, with their number."""
    for name in ("with/one", "empty", "within/empty"):
        (tmp_path / "tree" / name).mkdir(parents=True)
    (tmp_path / "tree/with/one/file").write_bytes(b"1")
    copy = ("copy", "-r", tmp_path / "tree", f"{bucket.url}tree")
    rehearsed = mpx(*copy, "--dry-run")
    copied(rehearsed)
    assert f"would copy {tmp_path}/tree/with/one/file to {bucket.url}tree/with/one/file, 1 B" in rehearsed.out
    assert "folder s3" not in rehearsed.out
    done = mpx(*copy)
    copied(done)
    for said in (rehearsed.out, done.out):
        (told,) = [line for line in said.splitlines() if "empty folder" in line]
        assert told.startswith("note: 2 empty folders left out") and f"{bucket.url}tree/" in told
    assert bucket.keys() == {"tree/with/one/file"}


def test_what_changed_meanwhile_is_not_mixed(bucket: Bucket, tmp_path: Path) -> None:
    """A replaced object is another one: its ETag says so."""
    bucket.put("object", b"a" * 300_000)
    copied(mpx("copy", f"{bucket.url}object", tmp_path / "object"))
    bucket.put("object", b"b" * 300_000)
    copied(mpx("copy", f"{bucket.url}object", tmp_path / "object", "--overwrite", "always"))
    assert (tmp_path / "object").read_bytes() == b"b" * 300_000


def test_a_download_of_what_others_stored_in_parts(any_bucket: Bucket, tmp_path: Path) -> None:
    """Their sizes are asked for; then the ETag shows that all bytes are the same."""
    data, part_bytes = make(tmp_path / "x", (12 << 20) + 1).read_bytes(), 5 << 20
    any_bucket.put_in_parts("key", [data[i : i + part_bytes] for i in range(0, len(data), part_bytes)])
    copied(mpx("copy", f"{any_bucket.url}key", tmp_path / "key", "--report", tmp_path / "r.json"))
    assert (tmp_path / "key").read_bytes() == data
    assert json.loads((tmp_path / "r.json").read_text())["checksum"]["bytes"] == {"md5": len(data)}


def test_a_download_of_parts_of_several_sizes(any_bucket: Bucket, tmp_path: Path) -> None:
    data = make(tmp_path / "x", 12 << 20).read_bytes()
    any_bucket.put_in_parts("key", [data[: 6 << 20], data[6 << 20 : 11 << 20], data[11 << 20 :]])
    copied(mpx("copy", f"{any_bucket.url}key", tmp_path / "key", "--report", tmp_path / "r.json"))
    assert (tmp_path / "key").read_bytes() == data
    assert "md5" not in json.loads((tmp_path / "r.json").read_text())["checksum"]["bytes"]
