"""`make demo-web`: HTTPS, WebDAV, copies straight between two servers, and S3, on loopback; no root.

Servers are those that come with the tools for tests (WsgiDAV, moto), and XRootD where it is installed. A CA,
a certificate for the host and a proxy for the user are made for the demo and thrown away with it.
"""

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mpx.errors import MpxError
from mpx_lab.demo_straight import MPX, make_file, mpx
from mpx_lab.private_grid import PrivateGrid
from mpx_lab.private_web import S3_KEYS, XROOTD, XROOTD_PACKAGES, make_bucket, s3, webdav

SIZE_BYTES = 128 << 20
S3_BYTES = 32 << 20  # moto is slow
FILES, FILE_BYTES = 50, 20_000
RATE = "400Mbit/s"  # so that there is something left to resume
WITHIN_S, LOOK_S = 20.0, 0.02
VERDICTS = {
    True: "each copy was compared with the original byte for byte: all are the same",
    False: "A COPY FAILED OR DIFFERS from the original",
}
_IN_A_NETWORK = 'ip link set lo up && exec "$@"'  # that has nothing but loopback


def main() -> int:
    """Run the demo; return 0 when all that was copied has arrived as it was."""
    try:
        with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name:
            folder = Path(name)
            forget_other_sites()
            os.environ["MPX_STATE_DIR"] = str(folder / "state")
            (folder / "grid").mkdir()
            print("making a CA, a certificate for localhost and a proxy for /O=Lab/CN=Alice", flush=True)
            grid = PrivateGrid(folder / "grid")
            os.environ.update(grid.user_environment)
            (folder / "ca.pem").write_text(grid.ca.pem)
            make_file(folder / "served/data.bin", SIZE_BYTES)
            for number in range(FILES):
                make_file(folder / f"tree/{number % 5}/{number}", FILE_BYTES)
            fine = _https_and_webdav(folder, grid)
            fine = straight() and fine
            fine = up_and_down(folder) and fine
    except MpxError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"\n{VERDICTS[fine]}")
    return 0 if fine else 1


def forget_other_sites() -> None:
    """Have nothing go to the servers of S3, or through the proxies, that this account uses otherwise."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull


def _https_and_webdav(folder: Path, grid: PrivateGrid) -> bool:
    with webdav(folder / "served", grid) as port:
        print("\n--- a download by HTTPS, killed and continued", flush=True)
        words = [f"https://localhost:{port}/data.bin", str(folder / "back.bin")]
        words += ["--ca", str(folder / "ca.pem"), "--rate", RATE]
        print(f"\n$ mpx copy {' '.join(words)}", flush=True)
        with subprocess.Popen([*MPX, "copy", *words]) as killed:
            until_s = time.monotonic() + WITHIN_S
            while _arrived_bytes(folder) < SIZE_BYTES // 3 and time.monotonic() < until_s:
                time.sleep(LOOK_S)  # a file has no event for what it has grown to
            killed.kill()
        print("killed (SIGKILL); what is there is known:", flush=True)
        mpx("unfinished")
        fine = mpx("copy", *words)
        fine = fine and filecmp.cmp(folder / "served/data.bin", folder / "back.bin", shallow=False)
        print("\n--- a tree by WebDAV", flush=True)
        fine = mpx("copy", "-r", str(folder / "tree"), f"davs://localhost:{port}/up") and fine
        fine = mpx("list", f"davs://localhost:{port}/up") and fine
    return _is_same_tree(folder / "tree", folder / "served/up") and fine


def _arrived_bytes(folder: Path) -> int:
    """Return how much of the file that is downloaded is on disk."""
    return sum(512 * part.stat().st_blocks for part in folder.glob(".back.bin*.part"))


def _is_same_tree(one: Path, other: Path) -> bool:
    names = [path.relative_to(one) for path in one.rglob("*") if path.is_file()]
    same, _, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    return len(same) == FILES


def straight() -> bool:
    """Have one XRootD copy from another, where it is installed; tell whether what was tried succeeded."""
    print("\n--- a copy straight between two servers, by HTTP-TPC", flush=True)
    if not shutil.which(XROOTD):
        print(f"left out: there is no {XROOTD} here (Debian: {XROOTD_PACKAGES})", flush=True)
        return True
    as_user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    in_network = ["unshare", "--net", *as_user, "sh", "-c", _IN_A_NETWORK, "sh"]
    if subprocess.run([*in_network, "true"], check=False, capture_output=True).returncode:
        print("left out: this account may not make a network for it; sudo make demo-web does", flush=True)
        return True
    straight = [*in_network, sys.executable, "-m", "mpx_lab.demo_straight"]
    return subprocess.run(straight, check=False).returncode == 0


def up_and_down(folder: Path) -> bool:
    """Copy a file to a bucket and back; tell whether it is the same."""
    print("\n--- S3, up in parts and down in ranges", flush=True)
    os.environ.update(S3_KEYS)
    source, back = folder / "for-s3.bin", folder / "from-s3.bin"
    make_file(source, S3_BYTES)
    with s3(folder) as port:
        os.environ["AWS_ENDPOINT_URL"] = f"http://localhost:{port}"
        make_bucket("demo", port)
        fine = mpx("copy", str(source), "s3://demo/data.bin")
        fine = mpx("copy", "s3://demo/data.bin", str(back)) and fine
    return fine and filecmp.cmp(source, back, shallow=False)


if __name__ == "__main__":
    sys.exit(main())
