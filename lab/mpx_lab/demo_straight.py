"""The part of `make demo-web` that copies from one XRootD to another, in a network that only it has.

Whoever starts it has made that network, as XRootD listens on all addresses.
"""

import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mpx.errors import MpxError
from mpx_lab.private_grid import PrivateGrid
from mpx_lab.private_web import xrootd

SIZE_BYTES = 64 << 20
MPX = [sys.executable, "-m", "mpx"]


def main() -> int:
    """Return 0 when the file has arrived as it was."""
    try:
        with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name:
            return 0 if _copied(Path(name)) else 1
    except (MpxError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def _copied(folder: Path) -> bool:
    folder.chmod(0o755)  # XRootD works as another account where this runs as root
    for name in ("grid", "a", "b"):
        (folder / name).mkdir()
    grid = PrivateGrid(folder / "grid")
    os.environ.update({**grid.user_environment, "MPX_STATE_DIR": str(folder / "state")})
    make_file(folder / "a/data/data.bin", SIZE_BYTES)
    with xrootd(folder / "a", grid) as one, xrootd(folder / "b", grid) as other:
        ends = [f"davs://localhost:{port}/data.bin" for port in (one, other)]
        fine = mpx("copy", "-v", "--third-party", "only", *ends)
    return fine and filecmp.cmp(folder / "a/data/data.bin", folder / "b/data/data.bin", shallow=False)


def mpx(*words: str) -> bool:
    """Run mpx as a person would, who sees the command and what it says; tell whether it succeeds."""
    print(f"\n$ mpx {' '.join(words)}", flush=True)
    return subprocess.run([*MPX, *words], check=False).returncode == 0


def make_file(path: Path, size_bytes: int) -> None:
    """Make a file of random bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size_bytes))


if __name__ == "__main__":
    sys.exit(main())
