"""Packs a dataset: `python -m mpx_lab.dataset.archive DATASET FILE.tar.xz [KEPT.tar.xz ...]`.

Of each run that counts only what training reads, of the others why they do not, and the noise of hosts: a
fiftieth of what lies in the folder. Unpacked it is a dataset again, to train on or to add links to. What is
in other archives already is left out.
"""

import argparse
import csv
import io
import lzma
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mpx.errors import MpxError, UsageError
from mpx_lab.dataset.load import dips_file, own_files
from mpx_lab.dataset.store import INVALID, NOISE, REASON, noise_files, runs_of
from mpx_lab.record_reader import RecordedRun

BROKEN = (tarfile.TarError, EOFError, lzma.LZMAError)
OF_OWN_DATA = ("t_s", "stream", "bytes_acked")


def archive(folder: Path, file: Path, kept: Sequence[Path] = ()) -> int:
    """Write the archive and return how many runs it holds. The same dataset makes the same bytes.

    What other archives hold already is left out. Raises UsageError for a folder that holds no dataset and
    where the file is one of the others, OSError, and BROKEN for what is no archive.
    """
    if file.resolve() in {each.resolve() for each in kept}:
        raise UsageError(
            f"{file} is also given as an archive to leave out, and would be overwritten; name another file"
        )
    before = dict(member for each in kept for member in _members(each))
    runs = [run for run in runs_of(folder) if not _is_in(before, run.folder, "run.json")]
    with tarfile.open(file, "w:xz", preset=9) as tar:
        for run in runs:
            for name, data in _parts(run):
                _add(tar, f"{run.folder.name}/{name}", data)
        for noise in noise_files(folder):
            if not _is_in(before, noise.parent, noise.name):
                _add(tar, f"{noise.parent.name}/{noise.name}", noise.read_bytes())
        for place in sorted(folder.glob(f"*.{INVALID}")):
            for name in (REASON, "run.json"):
                if (place / name).exists() and not _is_in(before, place, name):
                    _add(tar, f"{place.name}/{name}", (place / name).read_bytes())
    return len(runs)


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what identifies a run, and the noise of hosts."""
    with tarfile.open(file) as tar:
        for member in tar:
            identifies = Path(member.name).name in (REASON, "run.json") or member.name.startswith(f"{NOISE}/")
            data = tar.extractfile(member) if identifies else None
            if data is not None:
                yield member.name, data.read()


def _is_in(before: Mapping[str, bytes], place: Path, name: str) -> bool:
    return before.get(f"{place.name}/{name}") == (place / name).read_bytes()


def _parts(run: RecordedRun) -> Iterator[tuple[str, bytes]]:
    for name in ("run.json", "rtt/single.csv", "rtt/train.csv"):
        yield name, (run.folder / name).read_bytes()
    for number in range(1, len(run.about["parameters"]["series"]) + 1):
        for file in own_files(run, number):
            name = str(file.relative_to(run.folder))
            text = io.StringIO()
            writer = csv.DictWriter(text, OF_OWN_DATA, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(run.rows(name))
            yield name, text.getvalue().encode()
        if (dips := dips_file(run, number)).exists():
            yield str(dips.relative_to(run.folder)), dips.read_bytes()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)  # no owner, no time: the same runs give the same bytes
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the archive; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.dataset.archive", description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("kept", type=Path, nargs="*", help="other archives")
    options = parser.parse_args(arguments)
    try:
        held = archive(options.dataset, options.file, options.kept)
    except (MpxError, OSError, *BROKEN) as error:
        sys.stderr.write(f"archive: {error}\n")
        return 1
    sys.stdout.write(f"{held} runs, {options.file.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
