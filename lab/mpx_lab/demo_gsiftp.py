"""`make demo-gsiftp`: copies to and from a stock GridFTP server with a throwaway CA; no root.

The server is globus-gridftp-server of Debian, which is unpacked into .cache if it is missing. A CA, a
certificate for the host and a proxy for the user are made for the demo and thrown away with it.
"""

import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpx.errors import MpxError, UsageError
from mpx_lab.demo import VERDICTS
from mpx_lab.private_grid import PrivateGrid

SIZE_BYTES = 256 << 20
START_S = 30
PROGRAM, PACKAGE = "globus-gridftp-server", "globus-gridftp-server-progs"
MPX = [sys.executable, "-m", "mpx"]
_PROGRAMS = "/usr/sbin:/usr/local/sbin:/sbin"
_CACHE = Path(".cache/globus-gridftp-server")


def main() -> int:
    """Run the demo; return 0 when the file has come back as it was, and a stranger was not let in."""
    try:
        with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name:
            folder = Path(name)
            (folder / "grid").mkdir()
            (folder / "served").mkdir()
            account = "nobody" if os.geteuid() == 0 else ""
            if account:  # as whom a server that runs as root serves
                folder.chmod(0o755)
                (folder / "served").chmod(0o777)
            print("making a CA, a certificate for localhost and a proxy for /O=Lab/CN=Alice", flush=True)
            grid = PrivateGrid(folder / "grid", account)
            with running(grid) as port:
                return _copies(grid, folder, f"gsiftp://localhost:{port}{folder}/served/")
    except MpxError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


@contextmanager
def running(grid: PrivateGrid) -> Iterator[int]:
    """A server of that grid on loopback; yields its port."""
    program, environment = find_server()
    interface = ["-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1"]
    with subprocess.Popen(
        [program, "-p", "0", *interface],
        stdout=subprocess.PIPE,
        env={**environment, **grid.server_environment},
    ) as server:
        try:
            assert server.stdout
            ready, _, _ = select.select([server.stdout], [], [], START_S)
            found = re.search(rb":(\d+)\s*$", server.stdout.readline()) if ready else None
            if not found:
                raise UsageError(f"{program} does not start")
            yield int(found.group(1))
        finally:
            server.terminate()


def _copies(grid: PrivateGrid, folder: Path, url: str) -> int:
    os.environ.update(grid.user_environment)
    source, back = folder / "data.bin", folder / "back.bin"
    with source.open("wb") as file:
        for _ in range(SIZE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
    fine = True
    for words in (
        [str(source), f"{url}data.bin"],
        [f"{url}data.bin", str(back)],
        ["--encrypt", str(source), f"{url}encrypted.bin"],
    ):
        print(f"\n$ mpx copy {' '.join(words)}", flush=True)
        fine = subprocess.run([*MPX, "copy", *words], check=False).returncode == 0 and fine
    served = folder / "served"
    parts = (served / "data.bin", back, served / "encrypted.bin")
    fine = fine and all(part.read_bytes() == source.read_bytes() for part in parts)
    grid.map("/O=Lab/CN=Bob", "nobody")
    print(f"\nnow the server's grid-mapfile has somebody else\n$ mpx list {url}", flush=True)
    is_refused = subprocess.run([*MPX, "list", url], check=False).returncode == 5
    print(f"\n{VERDICTS[fine]}" + ("" if is_refused else "; BUT SOMEBODY WHO IS NOT KNOWN WAS LET IN"))
    return 0 if fine and is_refused else 1


def find_server() -> tuple[str, dict[str, str]]:
    """Return the path of the server and its environment: of this host, or unpacked here and not installed."""
    if found := shutil.which(PROGRAM, path=f"{os.environ.get('PATH', '')}:{_PROGRAMS}"):
        return found, dict(os.environ)
    if not shutil.which("apt-get"):
        raise UsageError(f"there is no {PROGRAM} here; install it ({PACKAGE})")
    unpacked = _CACHE.resolve() / "usr/sbin" / PROGRAM
    if not unpacked.exists():
        print(f"unpacking the package {PACKAGE} into .cache, without installing it", flush=True)
        _unpack()
    if not unpacked.exists():
        raise UsageError(f"there is no {PROGRAM} here, and its package cannot be had; install {PACKAGE}")
    libraries = ":".join(map(str, _CACHE.resolve().glob("usr/lib/*-linux-gnu")))
    return str(unpacked), {**os.environ, "LD_LIBRARY_PATH": libraries}


def _unpack() -> None:
    """Unpack the package with those that it needs and this host lacks."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    simulate = ["apt-get", "install", "--simulate", "--no-install-recommends", PACKAGE]
    said = subprocess.run(simulate, capture_output=True, text=True, check=False).stdout
    names = re.findall(r"^Inst (\S+)", said, re.MULTILINE) or [PACKAGE]
    subprocess.run(["apt-get", "download", "-qq", *names], cwd=_CACHE, check=False)
    for archive in _CACHE.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(archive.resolve()), str(_CACHE.resolve())], check=False)
        archive.unlink()


if __name__ == "__main__":
    sys.exit(main())
