"""A small file that the server refuses harms none of those stored in the same batch."""

import os
from pathlib import Path

import pytest
from interop.stock_server import StockServer

import mpx
from mpx.files.partial_names import partial_name
from mpx.transfer.journal import copy_tag

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("checksum", ["none", "adler32"])
def test_one_refused_file_of_a_batch(tmp_path: Path, checksum: str) -> None:
    tree, root = tmp_path / "tree", tmp_path / "served"
    tree.mkdir()
    root.mkdir()
    contents = {f"file{i:02}": os.urandom(10_000 + i) for i in range(60)}
    for name, content in contents.items():
        (tree / name).write_bytes(content)
    with StockServer(root) as server:
        target = f"{server.url}tree"
        there = root / "tree"
        in_the_way = Path(partial_name(str(there / "file20"), copy_tag(str(tree), target)))
        in_the_way.mkdir(parents=True)  # where the file would grow
        there.chmod(0o777)
        with pytest.raises(mpx.PartialFailure) as failed:
            mpx.copy(str(tree), target, mpx.CopyOptions(recursive=True, checksum=checksum))
    report = failed.value.report
    assert report is not None
    assert (report.files.moved, report.files.failed) == (59, 1)
    del contents["file20"]
    assert {name: (there / name).read_bytes() for name in contents} == contents
    assert not (there / "file20").exists()
    assert not any("damaged" in note for note in report.notes)
