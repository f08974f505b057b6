"""Folders of many pages: names are found wherever they are, and few requests find those of a task."""

import pytest
from globus.conftest import Collections
from globus.fake_globus import OTHER, Answer, Request
from hypothesis import given
from hypothesis import strategies as st
from interop.trees import names
from sites import make

import mpx as api
from mpx.endpoints.globus import listing, worker
from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.folder_search import FEWEST_PAGES, FolderSearch, ListedPlaces
from mpx.endpoints.globus.listing import GlobusListing
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import FileInfo
from mpx.errors import ConnectionLost, DestinationError
from mpx.location import parse_location

PAGE, TASK, FILES = 50, 20, 400


@given(st.integers(0, 60), st.integers(0, 12), st.integers(0, 400), st.integers(0, 70))
def test_pages_are_read_once_and_all_of_them_where_that_is_worth_it(
    entries: int, start: int, count: int, useful: int
) -> None:
    search, read = FolderSearch(start, count, 7), list[int]()

    def ask(number: int) -> list[int]:
        read.append(number)
        return list(range(entries))[number * 7 : number * 7 + 7]

    seen = list[int]()
    for page in search.pages(ask):
        seen += page
        search.was_useful = useful in page
    assert len(read) == len({*read}) <= FEWEST_PAGES + count // 50 and min(read) >= 0
    if search.saw_all or len(read) < FEWEST_PAGES + count // 50:
        assert sorted(seen) == list(range(entries))
    assert not search.saw_all or read == sorted(read)


@pytest.fixture
def long_folder(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> Collections:
    """A folder of eight pages, of which a task has less than a half."""
    monkeypatch.setattr(listing, "PAGE", PAGE)
    monkeypatch.setattr(worker, "MOST_ITEMS", TASK)
    for i in range(FILES):
        make(collections.one / f"run7/{i:04}", 1)
    return collections


def copy_run7(collections: Collections) -> None:
    ends = f"{collections.one_url}run7", f"{collections.other_url}run7"
    api.copy(*ends, api.CopyOptions(recursive=True))


def test_a_task_does_not_list_all_of_a_folder(long_folder: Collections) -> None:
    copy_run7(long_folder)
    assert names(long_folder.other) == names(long_folder.one)
    tasks, pages = len(long_folder.fake.tasks), FILES // PAGE
    assert tasks >= FILES // TASK
    # A page at each end, now and then two; were all listed it would be eight times as many.
    assert long_folder.fake.count("/ls") < 2 * 3 * tasks + pages + 5
    assert long_folder.fake.count("/stat") < 6 * tasks


def test_what_is_there_is_looked_for_page_by_page(long_folder: Collections) -> None:
    copy_run7(long_folder)
    make(long_folder.one / "run7/zz", 1)
    long_folder.fake.asked.clear()
    copy_run7(long_folder)
    assert names(long_folder.other) == names(long_folder.one)
    assert long_folder.fake.count("/ls") < 4 * (FILES // PAGE + 1)


@pytest.fixture
def at_the_end(long_folder: Collections) -> GlobusListing:
    """A listing that goes on from the last page of a folder."""
    for i in range(FILES):
        make(long_folder.other / f"{i:04}", i)
    places = ListedPlaces()
    places.note("/", FILES // PAGE)
    access = GlobusAccess(parse_location(long_folder.other_url), WebOptions())
    return GlobusListing(access, DestinationError, lambda: False, places)


def test_names_that_are_far_from_those_before(at_the_end: GlobusListing) -> None:
    some = [0, 7, 120, 121, 333]
    wanted = [f"/{i:04}" for i in some]
    found = at_the_end.stats([*wanted, "/no"], follow=True)
    assert [info.size_bytes for info in found[:-1] if isinstance(info, FileInfo)] == some and found[
        -1
    ] is None
    assert at_the_end.stats(wanted[:2], follow=True) == found[:2]


@pytest.mark.parametrize("most_kept", [120, 250])  # less than one search shows, and less than two
def test_a_folder_of_more_entries_than_are_kept(
    at_the_end: GlobusListing, most_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen and is not kept is looked for anew, and not told to be missing."""
    monkeypatch.setattr(listing, "_MOST_KEPT", most_kept)
    at_the_end._places.note("/", 0)
    for letter in "xyz":
        assert at_the_end.stats([f"/{letter}{i}" for i in range(4)], follow=True) == [None] * 4
    some = [1, 2, 49, 50, 130, 160, 199, 200, 270, 399]
    found = at_the_end.stats([f"/{i:04}" for i in some], follow=True)
    assert [info.size_bytes for info in found if isinstance(info, FileInfo)] == some


def test_an_entry_that_moves_to_a_page_that_was_read(
    long_folder: Collections, at_the_end: GlobusListing
) -> None:
    """It is asked for before it counts as missing, although pages to both ends have been read."""
    asked = list[int]()

    def without(request: Request) -> Answer | None:
        asked.append(int(request.query["offset"]))
        told = long_folder.fake._operation(request, long_folder.other, "ls")
        return Answer(200, {"DATA": [each for each in told.body["DATA"] if each["name"] != "0002"]})

    long_folder.fake.lie(f"{OTHER}/ls", without, times=99)
    wanted = ["/0001", "/0002", "/0003", *(f"/{i:04}" for i in range(10, 400))]
    found = at_the_end.stats(wanted, follow=True)
    assert all(isinstance(info, FileInfo) for info in found) and 0 in asked


@pytest.mark.parametrize("tells_total", [True, False])
def test_answers_that_are_shorter_than_asked_for(long_folder: Collections, tells_total: bool) -> None:
    long_folder.fake.most_listed, long_folder.fake.tells_total = 7, tells_total
    copy_run7(long_folder)
    assert names(long_folder.other) == names(long_folder.one)
    long_folder.fake.asked.clear()
    copy_run7(long_folder)
    assert not long_folder.fake.count("/transfer")


def test_a_listing_that_repeats_itself(collections: Collections) -> None:
    some = [{"name": name, "type": "file", "size": 1} for name in "abc"]
    collections.fake.lie("/ls", Answer(200, {"DATA": some, "total": 250}), times=999)
    access = GlobusAccess(parse_location(collections.one_url), WebOptions())
    with pytest.raises(ConnectionLost, match="again and again"):
        list(GlobusListing(access, DestinationError, lambda: False).entries("/"))
    assert collections.fake.count("/ls") == 2
    access.close()
