"""`--probe-first` with real servers over loopback: what it says, whom it is for, and how it is stopped."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sites import Site, opened, own_site

import mpx
from mpx.errors import Interrupted, UsageError

Eventually = Callable[..., None]
SOON = {"probe_first_s": 5.0, "checksum": "none"}


@pytest.fixture(params=["mpx serve", "stock server"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as made:
        yield made


def test_an_upload_begins_once_the_path_was_probed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    report = mpx.copy(tmp_path / "a", site.url, mpx.CopyOptions(**SOON))
    (said,) = [note for note in report.notes if "before the copy" in note]
    assert "trees): it begins with" in said
    assert report.timeline[0].congestion == said.rsplit(" ", 1)[1]
    assert report.status == "done" and report.files.moved == 1


def test_where_nothing_can_be_chosen_nothing_is_probed(tmp_path: Path) -> None:
    with own_site(tmp_path) as served:
        (tmp_path / "a").write_bytes(b"content")
        options = mpx.CopyOptions(**SOON, congestion="reno")
        report = mpx.copy(tmp_path / "a", served.url + "b", options)
    assert "nothing was probed first: there is no congestion control to choose" in report.notes


def test_a_stop_while_it_probes_ends_the_copy_and_leaves_nothing(
    tmp_path: Path, eventually: Eventually
) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "served").mkdir()
    cancel, ended = threading.Event(), list[BaseException]()

    def copy() -> None:
        try:
            mpx.copy(tmp_path / "a", served.url, mpx.CopyOptions(probe_first_s=600.0), cancel=cancel)
        except Interrupted as error:
            ended.append(error)

    with own_site(tmp_path / "served") as served:
        copying = threading.Thread(target=copy)
        copying.start()
        eventually(lambda: any(thread.name == "mpx-rtt-watch" for thread in threading.enumerate()))
        cancel.set()
        copying.join(60)
    assert len(ended) == 1 and not copying.is_alive()
    assert list((tmp_path / "served").iterdir()) == []


def test_a_classifier_is_for_what_is_probed_first() -> None:
    with pytest.raises(UsageError, match="--probe-first 10s"):
        mpx.CopyOptions(classifier="knn-dtw")
    assert mpx.CopyOptions(classifier="knn-dtw", probe_first_s=10.0).classifier == "knn-dtw"
