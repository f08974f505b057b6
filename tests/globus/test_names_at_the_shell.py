"""What users write at the shell for a collection: names that URLs write otherwise, and folders."""

from pathlib import Path

import pytest
from globus.conftest import Collections
from globus.fake_globus import ONE
from interop.trees import names
from mpx_command import mpx, refused
from sites import make
from web.servers.nginx import nginx_site

STRANGE = [
    "a b",
    "c#d",
    "e?f",
    "g%h",
    "g%20i",
    "ü",
    "+x",
    "blank at its end ",
    "-dash",
    "q'\"q",
    "*",
    "a\\b",
    "~",
]


@pytest.fixture
def tree(collections: Collections) -> Collections:
    for name in STRANGE:
        make(collections.one / "run 7" / name / name, 5)
    make(collections.one / "run 7/zero", 0)
    (collections.one / "run 7/empty folder").mkdir()
    return collections


def same(one: Path, other: Path) -> bool:
    return names(one) == names(other) and all(
        (one / name / name).read_bytes() == (other / name / name).read_bytes() for name in STRANGE
    )


def test_between_collections(tree: Collections) -> None:
    ended = mpx("copy", "-r", f"{tree.one_url}run%207", f"{tree.other_url}to/run 8")
    assert ended.code == 0 and same(tree.one / "run 7", tree.other / "to/run 8"), ended.err


def test_by_https_and_back(tree: Collections, tmp_path: Path) -> None:
    with nginx_site(tree.one, tls=True) as site:
        tree.fake.about[ONE] = {"https_server": f"https://localhost:{site.port}"}
        trusting = "copy", "--ca", str(site.ca), "-r"
        down = mpx(*trusting, f"{tree.one_url}run%207", tmp_path / "down")
        assert down.code == 0 and same(tree.one / "run 7", tmp_path / "down"), down.err
        up = mpx(*trusting, tmp_path / "down", f"{tree.one_url}up")
        assert up.code == 0 and same(tree.one / "up", tmp_path / "down"), up.err
        refused(
            mpx("copy", "-r", f"{tree.one_url}up", tmp_path / "no"), 5, "certificate of https://localhost"
        )


@pytest.mark.parametrize("name", ["c%23d", "c#d", "e%3Ff", "e?f", "g%25h", "g%h", "%C3%BC", "ü"])
def test_a_name_in_a_url(tree: Collections, name: str) -> None:
    ended = mpx("list", f"{tree.one_url}run%207/{name}/")
    assert ended.code == 0 and len(ended.out.splitlines()) == 1, (ended.out, ended.err)
    assert ended.out.strip() in STRANGE


def test_a_file_of_no_bytes(tree: Collections) -> None:
    for _ in range(2):
        ended = mpx("copy", f"{tree.one_url}run%207/zero", f"{tree.other_url}zero")
        assert ended.code == 0 and (tree.other / "zero").stat().st_size == 0, ended.err
    assert len(tree.fake.tasks) == 1


def test_a_folder_at_the_destination(tree: Collections) -> None:
    make(tree.other / "there/x", 1)
    make(tree.other / "zero/zero/x", 1)
    zero = f"{tree.one_url}run%207/zero"
    assert mpx("copy", zero, f"{tree.other_url}there").code == 0
    assert names(tree.other / "there") == ["x", "zero"]
    refused(mpx("copy", zero, f"{tree.other_url}zero"), 4, "/zero/zero: there is a folder of that name")
    refused(mpx("copy", f"{tree.one_url}run%207", f"{tree.other_url}y"), 2, "is a folder", "-r")


@pytest.mark.parametrize("source", ["run%207", "run%207/zero"])
def test_a_dry_run(tree: Collections, source: str) -> None:
    ended = mpx("copy", "-r", "--dry-run", f"{tree.one_url}{source}", f"{tree.other_url}new")
    assert ended.code == 0 and "nothing was copied" in ended.out, ended.err
    assert f"would copy globus://{ONE}/run 7" in ended.out
    assert names(tree.other) == [] and not tree.fake.tasks
    assert {each.method for each in tree.fake.asked if "/operation/" in each.path} == {"GET"}


def test_no_collection_is_probed(tree: Collections) -> None:
    refused(mpx("probe", tree.one_url), 2, "cannot be probed", "https://HOST/")
