"""`--probe-first` with real servers over loopback: what it says, whom it is for, and how it is stopped."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sites import Site, opened, own_site

import mpx
from mpx import ops_classifier
from mpx.choices import SVM
from mpx.endpoints.ftp.mode_e import upload_stream
from mpx.errors import Interrupted, UsageError
from mpx.net.congestion_control import congestion_of, why_not_congestion
from mpx.recognition.mix import Mix

Eventually = Callable[..., None]
LONG_ENOUGH = {"probe_first_s": 10.0, "checksum": "none"}  # for the window of bursts
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


class Says:
    """A classifier that says one thing, with that probability."""

    def __init__(self, name: str, probability: float) -> None:
        self._name, self._probability = name, probability

    @property
    def name(self) -> str:
        return SVM

    def window_s(self, kind: str = "passive") -> float:
        return 5.0

    def classify(self, *_: object, **__: object) -> Mix:
        rest = (1 - self._probability) / 2  # of two that ask for something else
        asked = [rest, self._probability, rest, 0.0, 0.0, 0.0]
        if self._name == "B":
            asked = [rest, rest, self._probability, 0.0, 0.0, 0.0]
        return Mix(self._name, self._probability, asked)


@pytest.mark.parametrize(
    ("background", "probability", "wanted"),
    [("B", 0.95, "bbr"), ("B", 0.6, "bbr"), ("B", 0.4, "cubic"), ("C", 0.95, "cubic")],
)
def test_streams_are_opened_with_what_the_background_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: str, probability: float, wanted: str
) -> None:
    """As the kernel has it of the sockets."""
    if why := why_not_congestion(wanted):
        pytest.skip(why)
    used = set[str | None]()
    connect = upload_stream.tcp.connect

    def connected(*words: object, congestion: str | None = None, **more: object) -> socket.socket:
        made = connect(*words, congestion=congestion, **more)  # type: ignore[arg-type]
        if congestion:  # sessions have that of the kernel, which may be any
            used.add(congestion_of(made))
        return made

    monkeypatch.setattr(upload_stream.tcp, "connect", connected)
    monkeypatch.setattr(ops_classifier, "load", lambda **_: Says(background, probability))
    with own_site(tmp_path) as served:
        (tmp_path / "a").write_bytes(b"content")
        report = mpx.copy(tmp_path / "a", served.url + "b", mpx.CopyOptions(**SOON))
    assert used == {wanted}
    assert report.timeline[0].congestion == wanted


def test_who_watches_sees_that_it_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[mpx.Progress] = []
    monkeypatch.setattr(ops_classifier, "load", lambda **_: Says("C", 0.9))
    with own_site(tmp_path) as served:
        (tmp_path / "a").write_bytes(b"content")
        mpx.copy(tmp_path / "a", served.url + "b", mpx.CopyOptions(**SOON), on_progress=seen.append)
    assert "before data move" in seen[0].reason and not seen[0].is_listed
    assert not any("before data move" in each.reason for each in seen[1:])


def test_the_note_names_the_classifier_that_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may be another than the option has it."""
    monkeypatch.setattr(ops_classifier, "load", lambda **_: Says("C", 0.9))
    with own_site(tmp_path) as served:
        (tmp_path / "a").write_bytes(b"content")
        report = mpx.copy(tmp_path / "a", served.url + "b", mpx.CopyOptions(**SOON))
    assert any("probably C" in note and "probes, svm)" in note for note in report.notes)


def test_where_nothing_can_be_chosen_nothing_is_probed(tmp_path: Path) -> None:
    with own_site(tmp_path) as served:
        (tmp_path / "a").write_bytes(b"content")
        options = mpx.CopyOptions(**SOON, congestion="reno")
        report = mpx.copy(tmp_path / "a", served.url + "b", options)
    assert (
        "nothing was probed first: --congestion reno leaves no congestion control to choose" in report.notes
    )


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


def test_bursts_show_what_the_path_carries(site: Site, tmp_path: Path) -> None:
    if why := why_not_congestion("bbr"):
        pytest.skip(why)
    (tmp_path / "a").write_bytes(b"content")
    report = mpx.copy(tmp_path / "a", site.url, mpx.CopyOptions(**LONG_ENOUGH, probe_mode="active"))
    (said,) = [note for note in report.notes if "bursts were sent for" in note]
    assert "the path carries at least" in said
    (recognised,) = [note for note in report.notes if "before the copy the background" in note]
    assert "probes and bursts): it begins with" in recognised
    assert report.status == "done" and report.files.moved == 1


def test_what_bursts_cannot_show_is_probed_without_them(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    mpx.copy(tmp_path / "a", f"{site.url}a", mpx.CopyOptions(checksum="none"))
    report = mpx.copy(f"{site.url}a", tmp_path / "b", mpx.CopyOptions(**LONG_ENOUGH, probe_mode="active"))
    assert any(note.startswith("no bursts before the copy: they go to the server") for note in report.notes)
    assert (tmp_path / "b").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"policy": "scavenger"}, "--policy scavenger permits"),
        ({"rate_bps": 1e9}, "--rate permits"),
        ({"congestion": "cubic", "streams": 2}, "neither a congestion control nor a number of streams"),
    ],
)
def test_no_bursts_where_they_may_not_be_or_decide_nothing(
    options: dict[str, object], why: str, tmp_path: Path
) -> None:
    with own_site(tmp_path) as served:
        (tmp_path / "a").write_bytes(b"content")
        cancelled = threading.Event()
        wanted = mpx.CopyOptions(**LONG_ENOUGH, probe_mode="active", **options)
        notes = list[str]()

        def begun(report: mpx.Report) -> None:
            plain = report.note

            def note(text: str, *more: object) -> None:
                plain(text, *more)
                notes.append(text)
                if text.startswith("no bursts"):
                    cancelled.set()  # what follows is tested elsewhere

            report.note = note

        with contextlib.suppress(Interrupted):
            mpx.copy(tmp_path / "a", served.url + "b", wanted, on_begun=begun, cancel=cancelled)
    assert any(why in note for note in notes)
