"""Copies between two collections: the service moves the data, and what arrives is what was sent."""

import json
from pathlib import Path

import pytest
from globus.conftest import Collections
from globus.fake_globus import Answer, error
from globus.fake_task import FakeTask
from interop.trees import names
from mpx_command import mpx, refused
from sites import make

import mpx as api
from mpx.endpoints.globus import listing

TREE = {"a": 1, "sub/b": 70_000, "sub/c": 0, "sub/deep/d e": 3, "sub/ü%2f": 5}


def make_tree(folder: Path) -> None:
    for name, size in TREE.items():
        make(folder / name, size)
    (folder / "empty").mkdir()


def same(one: Path, other: Path) -> bool:
    return names(one) == names(other) and all(
        (one / n).read_bytes() == (other / n).read_bytes() for n in TREE
    )


def report_of(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text())
    return found


def test_a_file(collections: Collections, tmp_path: Path) -> None:
    make(collections.one / "data/x", 1_000_000)
    ended = mpx(
        "copy", f"{collections.one_url}data/x", f"{collections.other_url}y", "--report", tmp_path / "r.json"
    )
    assert ended.code == 0, ended.err
    assert (collections.other / "y").read_bytes() == (collections.one / "data/x").read_bytes()
    report = report_of(tmp_path / "r.json")
    checksum = report["checksum"]
    assert isinstance(checksum, dict) and (checksum["algorithm"], checksum["result"]) == (
        "globus",
        "verified",
    )
    told = json.dumps(report)
    assert "congctl" not in told  # nothing here says how servers send to each other
    (task,) = collections.fake.tasks.values()
    assert f"Globus task {task.task_id}: SUCCEEDED, 1 file" in told and "not tunable" in told
    assert task.data["verify_checksum"] and task.data["preserve_timestamp"] and not task.data["encrypt_data"]


def test_a_tree_is_one_task(collections: Collections) -> None:
    make_tree(collections.one / "run7")
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}results/run7")
    assert ended.code == 0, ended.err
    assert same(collections.one / "run7", collections.other / "results/run7")
    assert len(collections.fake.tasks) == 1
    again = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}results/run7")
    assert again.code == 0 and "5 of 5 files skipped" in again.out, (again.out, again.err)
    assert len(collections.fake.tasks) == 1


@pytest.mark.parametrize("overwrite", ["different", "always", "never"])
def test_what_is_there(collections: Collections, overwrite: str) -> None:
    make(collections.one / "x", 5_000_000)
    (collections.other / "x").write_bytes(b"older")
    ended = mpx("copy", "--overwrite", overwrite, f"{collections.one_url}x", f"{collections.other_url}x")
    assert ended.code == 0, ended.err
    is_new = (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()
    assert is_new == (overwrite != "never")
    assert collections.fake.count("/delete") == 0  # the older one is there until the service replaces it


def test_a_list_of_files(collections: Collections, tmp_path: Path) -> None:
    for name in ("p", "q/r"):
        make(collections.one / name, 10)
    (tmp_path / "list").write_text(f"{collections.one_url}p\tfirst\n{collections.one_url}q/r\n")
    ended = mpx("copy", "--from-file", tmp_path / "list", f"{collections.other_url}into/")
    assert ended.code == 0, ended.err
    assert names(collections.other / "into") == ["first", "r"]


def test_a_dry_run_copies_nothing(collections: Collections) -> None:
    make_tree(collections.one / "run7")
    ended = mpx("copy", "-r", "--dry-run", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 0 and "would copy" in ended.out, ended.err
    assert not collections.fake.tasks and not names(collections.other)


def test_a_listing(collections: Collections) -> None:
    make_tree(collections.one / "run7")
    (collections.one / "run7/link").symlink_to("a")
    ended = mpx("list", "-l", f"{collections.one_url}run7/")
    assert ended.code == 0, ended.err
    assert "sub/" in ended.out and "link -> a" in ended.out, ended.out


def test_what_does_not_exist(collections: Collections) -> None:
    refused(mpx("copy", f"{collections.one_url}no", f"{collections.other_url}no"), 3, "no does not exist")
    other = f"globus://{'4' * 8}-4444-4444-8444-{'4' * 12}/x"
    refused(mpx("copy", other, f"{collections.other_url}no"), 3, "No such endpoint")


def test_one_that_cannot_be_read_keeps_nobody(collections: Collections) -> None:
    """It is gone before the service reads it."""
    make_tree(collections.one / "run7")

    def script(task: FakeTask) -> None:
        (collections.one / "run7/a").unlink()
        task.move()

    collections.fake.script = script
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 10 and "FILE_NOT_FOUND" in ended.err, ended.err
    assert names(collections.other / "run7") == names(collections.one / "run7")


def test_without_verification(collections: Collections) -> None:
    make(collections.one / "x", 100)
    ended = mpx(
        "copy", "--checksum", "none", "--encrypt", f"{collections.one_url}x", f"{collections.other_url}x"
    )
    assert ended.code == 0 and "unverified" in ended.out, ended.err
    (task,) = collections.fake.tasks.values()
    assert task.data["encrypt_data"] and not task.data["verify_checksum"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--streams", "4"), "--streams is not possible here: Globus decides"),
        (("--checksum", "md5"), "--checksum md5 is not possible here"),
        (("--third-party", "pull"), "--third-party pull is not possible here"),
        (("--continue",), "--continue is not possible here"),
        (("--third-party", "only", "--rate", "10Mbit/s"), "--rate"),
        (("--links", "keep"), "makes no symbolic links"),
    ],
)
def test_options_that_cannot_be_kept(collections: Collections, option: tuple[str, ...], words: str) -> None:
    make(collections.one / "x", 100)
    refused(mpx("copy", *option, f"{collections.one_url}x", f"{collections.other_url}x"), 2, words)
    assert not collections.fake.tasks


def test_folders_of_more_than_a_page(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE", 7)
    for i in range(20):
        make(collections.one / f"run7/{i}", i)
    api.copy(f"{collections.one_url}run7", f"{collections.other_url}run7", api.CopyOptions(recursive=True))
    assert names(collections.other / "run7") == names(collections.one / "run7")
    assert collections.fake.count("/ls") >= 6


def test_times_that_a_collection_does_not_keep(collections: Collections) -> None:
    """What was sent is noted, so that it is not sent again."""
    make(collections.one / "x", 100)

    def script(task: FakeTask) -> None:
        task.data = {**task.data, "preserve_timestamp": False}
        task.move()

    collections.fake.script = script
    for _ in range(2):
        ended = mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x")
        assert ended.code == 0, ended.err
    assert len(collections.fake.tasks) == 1


def test_nobody_is_let_in_without_credentials(service: Collections) -> None:
    make(service.one / "x", 1)
    refused(mpx("copy", f"{service.one_url}x", f"{service.other_url}x"), 5, "mpx globus login")


def test_a_permission_that_is_missing(collections: Collections) -> None:
    make(collections.one / "x", 1)
    denied = "Denied by endpoint, Error (list)\nMessage: Fatal FTP Response\nDetails: c=PERMISSION_DENIED"
    collections.fake.lie("/stat", error(403, "EndpointPermissionDenied", denied), times=9)
    refused(mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x"), 4, "Denied by endpoint")


def test_nonsense_is_no_answer(collections: Collections) -> None:
    make(collections.one / "x", 1)
    for words in ("/submission_id", "/transfer", "/task/"):
        collections.fake.lie(words, Answer(200, b"<html>"), times=2)
    ended = mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x")
    assert ended.code == 0 and len(collections.fake.tasks) == 1, ended.err
    collections.fake.lie("/stat", Answer(200, ["no", "object"]), times=99)
    refused(
        mpx("copy", "--retries", 1, f"{collections.one_url}x", f"{collections.other_url}y"),
        6,
        "Globus",
        "JSON",
    )


def test_within_one_collection(collections: Collections) -> None:
    make_tree(collections.one / "run7")
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.one_url}again")
    assert ended.code == 0, ended.err
    assert same(collections.one / "run7", collections.one / "again")
