"""`make fuzz`: gives every target inputs for a time, led by the lines that they reach.

    python tests/fuzz/run.py [--seconds 60] [--seed N] [--keep] [TARGET ...]

A target runs in a process of its own with bounded memory. An input that fails is written to .cache/fuzz, and
its path said; moved to tests/fuzz/corpus/TARGET it is tried by every `make test`. `--keep` adds to the corpus
what reaches lines that nothing there reaches. The same seed gives the same inputs.
"""

import argparse
import hashlib
import mmap
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # where pytest finds what tests share

import fuzzing
from mutations import long_pair

FAILED = Path(".cache/fuzz")
MOST_MEMORY_BYTES = 4 << 30  # of address space; threads and numpy take most of it
LONG_EVERY, LONG_BYTES = 200, 64 * 1024  # of the inputs, less often for targets that are slow
MOST_KEPT_BYTES = 4096


def fuzz(name: str, seconds: float, seed: int, tried: Callable[[bytes], None], *, keep: bool) -> int:
    """Run one target; return how many inputs it was given, each told to `tried` before. Raises Failed."""
    target, chance = fuzzing.target(name), random.Random(seed)
    known = [*target.SEEDS, *fuzzing.corpus(name)]
    pool, reached, count = list(known), set[fuzzing.Line](), 0
    until_s = time.monotonic() + seconds
    for count, data in enumerate(fuzzing.inputs(pool, chance), 1):
        tried(data)
        traced = fuzzing.Traced()
        fuzzing.run_one(target, data, traced)
        if count > len(known) and not traced.lines <= reached:
            pool.append(data)
        reached |= traced.lines
        if count % max(10, LONG_EVERY // fuzzing.weight(target)) == 0:
            pair = long_pair(pool, chance, LONG_BYTES)
            tried(pair[1])
            fuzzing.check_long(target, *pair)
        if time.monotonic() > until_s and count >= len(known):
            break
    if keep:
        _keep(target, name, pool, len(known))
    return count


def _keep(target: fuzzing.Target, name: str, pool: list[bytes], known: int) -> None:
    """Add the shortest of the new inputs that reach further to the corpus."""
    reached: set[fuzzing.Line] = set()
    for number, data in enumerate([*pool[:known], *sorted(pool[known:], key=len)]):
        traced = fuzzing.Traced()
        fuzzing.run_one(target, data, traced)
        if number >= known and len(data) <= MOST_KEPT_BYTES and not traced.lines <= reached:
            _write(fuzzing.HERE / "corpus" / name, data)
        reached |= traced.lines


def _write(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / hashlib.sha256(data).hexdigest()[:12]
    file.write_bytes(data)
    return file


class _Now:
    """A file with the input that is tried now: the process may not live to tell it."""

    BYTES = 1 << 20

    def __init__(self, name: str) -> None:
        FAILED.mkdir(parents=True, exist_ok=True)
        self._file = FAILED / f"{name}.now"

    def open(self) -> None:
        """Make room for inputs."""
        self._file.write_bytes(bytes(self.BYTES))
        with self._file.open("r+b") as opened:
            self._pages = mmap.mmap(opened.fileno(), self.BYTES)

    def put(self, data: bytes) -> None:
        """Keep one."""
        self._pages[: 4 + len(data)] = len(data).to_bytes(4) + data

    def take(self) -> bytes:
        """Return the last one, and remove the file."""
        data = self._file.read_bytes()
        self._file.unlink()
        return data[4 : 4 + int.from_bytes(data[:4])]


def _inside(name: str, told: argparse.Namespace) -> int:
    """Run one target in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    now = _Now(name)
    now.open()
    try:
        count = fuzz(name, told.seconds, told.seed, now.put, keep=told.keep)
    except fuzzing.Failed as failed:
        now.put(failed.data)
        traceback.print_exception(failed.__cause__ or failed)
        return 1
    print(f"{name}: seed {told.seed}: {count} inputs, nothing found", flush=True)
    return 0


def _one(name: str, told: argparse.Namespace) -> bool:
    """Run one target in a process of its own; return whether all was well."""
    words = ["--seconds", str(told.seconds), "--seed", str(told.seed), *(["--keep"] if told.keep else [])]
    ended = subprocess.run([sys.executable, __file__, "--inside", *words, name], check=False).returncode
    data = _Now(name).take()
    if ended:
        print(
            f"{name}: seed {told.seed} FAILED ({ended}); the input is {_write(FAILED / name, data)}",
            flush=True,
        )
    return not ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", default=fuzzing.names())
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.inside:
        return _inside(told.targets[0], told)
    failed = [name for name in told.targets if not _one(name, told)]
    if failed:
        print(f"failed: {', '.join(failed)}; the same again: --seed {told.seed} {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
