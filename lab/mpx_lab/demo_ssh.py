"""`make demo-ssh`: a copy to `localhost:` and back over ssh, with a private sshd; no root.

Nothing is set up at the other end: the server of mpx is sent there (`--bootstrap-once`), and data move to
direct connections inside TLS.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from mpx.errors import MpxError, UsageError
from mpx_lab.demo import VERDICTS
from mpx_lab.private_sshd import private_sshd

SIZE_BYTES = 256 << 20
_PROGRAMS = "/usr/sbin:/usr/local/sbin:/sbin"
_CACHE = Path(".cache/openssh-server")


def main() -> int:
    """Run the demo; return 0 when the file has come back as it was."""
    try:
        program = _sshd()
        with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name, private_sshd(program, _free_port()):
            return _copies(Path(name))
    except MpxError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def _copies(folder: Path) -> int:
    source, back = folder / "data.bin", folder / "back.bin"
    with source.open("wb") as file:
        for _ in range(SIZE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
    there = folder / "there.bin"
    fine = True
    for one, other in ((str(source), f"localhost:{there}"), (f"localhost:{there}", str(back))):
        words = ["mpx", "copy", one, other, "--bootstrap-once", "--remote-python", sys.executable]
        print(f"\n$ {' '.join(words[:4])} --bootstrap-once", flush=True)
        fine = subprocess.run([sys.executable, "-m", *words], check=False).returncode == 0 and fine
    fine = fine and source.read_bytes() == there.read_bytes() == back.read_bytes()
    print(f"\n{VERDICTS[fine]}")
    return 0 if fine else 1


def _sshd() -> str:
    """Return the path of sshd: that of this host, or one that is unpacked here and not installed."""
    path = f"{os.environ.get('PATH', '')}:{_PROGRAMS}:{(_CACHE / 'usr/sbin').resolve()}"
    if found := shutil.which("sshd", path=path):
        return found
    if os.geteuid() == 0 or not shutil.which("apt-get"):
        raise UsageError("there is no sshd here; install it (openssh-server)")
    print("unpacking the package openssh-server into .cache, without installing it", flush=True)
    _CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", "openssh-server"], cwd=_CACHE, check=False)
    for archive in _CACHE.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(archive.resolve()), str(_CACHE.resolve())], check=False)
    if found := shutil.which("sshd", path=path):
        return found
    raise UsageError("there is no sshd here, and its package cannot be had; install openssh-server")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
