"""`--probe-first`: the path is probed before a byte moves, and the copy begins as its background asks for."""

from collections.abc import Callable
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.own_controller import OWN
from test_multipath import Copying, folders, ours, url_of

Make = Callable[..., Lab]


def test_each_path_is_probed_by_itself_and_by_nearest_neighbours(make_lab: Make, tmp_path: Path) -> None:
    """Over sessions that take the paths: an idle network has nobody on any of them, or nobody is sure."""
    near, far, content = folders(tmp_path)
    (near / "a").write_bytes(content)
    lab = make_lab("thesis-a", scale=0.1, controller=OWN)
    with ours(lab, far) as served:
        words = ("--controller", OWN.rest, "--probe-first", "10s", "--classifier", "knn-dtw")
        report = Copying(lab, tmp_path, *words, near / "a", url_of(served, "b")).ended()
    assert report["status"] == "done", report["error"]
    assert (far / "b").read_bytes() == content
    said = [note for note in report["notes"] if "before the copy the background was" in note]
    assert sorted(note.split(":")[0] for note in said) == [f"path {name}" for name in range(4)]
    assert all("knn-dtw" in note and "it begins with" in note for note in said)
    probes = [int(note.split(" probes,")[0].rsplit(" ", 1)[1]) for note in said]
    assert min(probes) >= 95
    first = {event["path"]: event["congestion"] for event in reversed(report["timeline"])}
    assert [first[str(name)] for name in range(4)] == [note.rsplit(" ", 1)[1] for note in sorted(said)]
