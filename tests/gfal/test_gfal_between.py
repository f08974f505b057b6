"""Between two servers by gfal2: straight where they can, else through this host; never in another order."""

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sites import Site

import mpx as api
from mpx.endpoints.gfal.lanes import GfalLanes
from mpx.endpoints.gfal.process import GfalOptions, Opens
from mpx.endpoints.gfal.settings import CopyOrder, dumped
from mpx.endpoints.gfal.watched_job import WatchedJob
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.location import parse_location, through_gfal

Via = Callable[..., api.Report]
Open = Callable[[str], contextlib.AbstractContextManager[Site]]
LARGE_BYTES = 32 * 1024 * 1024 + 1
# What gfal2 does with one context: after a copy by several streams, another from the same server.
IN_ONE_CONTEXT = """
import sys, gfal2
context = gfal2.creat_context()
for streams, source, destination in ((4, sys.argv[1], sys.argv[2]), (0, sys.argv[1], sys.argv[3])):
    parameters = context.transfer_parameters()
    parameters.overwrite, parameters.nbstreams = True, streams
    context.filecopy(parameters, source, destination)
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [("grid", "nginx"), ("nginx", "grid"), ("grid", "grid2"), ("xrootd", "xrootd"), ("apache", "nginx")],
)
def test_a_tree_from_one_to_the_other(open_server: Open, via: Via, first: str, second: str) -> None:
    with open_server(first) as source, open_server(second) as destination:
        contents = {"a": b"", "b": b"1", "in/c": os.urandom(1_000_001)}
        for name, content in contents.items():
            source.write(f"tree/{name}", content)
        report = via(source.url_of("tree"), destination.url_of("got"), recursive=True)
        assert (report.files.moved, report.checksum["result"]) == (3, "verified")
        for name, content in contents.items():
            assert (destination.folder / "got" / name).read_bytes() == content
        assert any("gfal2 has copied by" in note for note in report.notes)


def test_within_xrootd_by_two_protocols(open_server: Open, via: Via) -> None:
    with open_server("root") as root, open_server("xrootd") as web:
        content = os.urandom(1_000_001)
        root.write("file", content)
        web.write("file", content)
        via(root.url_of("file"), web.url_of("from root"), in_place=True)
        via(web.url_of("file"), root.url_of("from web"))
        assert (web.folder / "from root").read_bytes() == content
        assert (root.folder / "from web").read_bytes() == content


def test_what_is_asked_of_the_way(open_server: Open, via: Via) -> None:
    with open_server("grid") as source, open_server("nginx") as destination:
        source.write("file", b"some")
        with pytest.raises(api.MpxError):
            via(source.url_of("file"), destination.url_of("no"), third_party="only", retries=0)
        assert list(destination.folder.iterdir()) == []
        report = via(source.url_of("file"), destination.url_of("file"), third_party="never")
        assert report.status == "done"


def test_a_file_after_one_with_several_streams(open_server: Open, tmp_path: Path) -> None:
    """With one context gfal2 then stores blocks in another order, and says that all went well: tried here.

    A process of ours that has done the same begins anew.
    """
    content = os.urandom(LARGE_BYTES)
    with open_server("grid") as first, open_server("grid2") as second:
        first.write("file", content)
        source, destination = first.url_of("file"), second.url_of("copy")
        shared, ours = tmp_path / "shared", tmp_path / "ours"
        words = ["/usr/bin/python3", "-c", IN_ONE_CONTEXT, source, destination, f"file://{shared}"]
        code = subprocess.run(words, check=False, timeout=100).returncode
        assert code <= 0  # it crashes of that, too, now and then
        assert code or shared.stat().st_size == LARGE_BYTES
        assert code or shared.read_bytes() != content, "gfal2 has mended it: a context may be kept"
        ours.touch()
        orders = [
            CopyOrder(source, destination, streams=4),
            CopyOrder(source, f"file://{ours}", is_here=True),
        ]
        options, place = LaneOptions(30.0, 30.0, lambda: False), through_gfal(parse_location(source))
        lanes = GfalLanes([place], GfalOptions(XrootdOptions(30.0, 30.0)), BearerTokens())
        with contextlib.closing(lanes.with_files(Opens.ALL).open(options)) as session:
            for order in orders:
                state = WatchedJob(session, 30.0, lambda: False).run("copy", dumped(order), lambda _: 0)
                assert state.is_over and not state.code, state
        assert ours.read_bytes() == content
        assert (second.folder / "copy").read_bytes() == content
