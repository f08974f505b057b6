"""`make demo-token`: `mpx serve` inside TLS, a token, a copy up and down, the token taken back; no root."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mpx_lab.demo import VERDICTS

SIZE_BYTES = 256 << 20
MPX = [sys.executable, "-m", "mpx"]


def main() -> int:
    """Run the demo; return 0 when the file has come back as it was, and the token is worth nothing then."""
    with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name:
        folder = Path(name)
        os.environ["MPX_STATE_DIR"] = str(folder / "state")
        (folder / "served").mkdir()
        source, back = folder / "data.bin", folder / "back.bin"
        with source.open("wb") as file:
            for _ in range(SIZE_BYTES >> 20):
                file.write(os.urandom(1 << 20))
        print("$ mpx token create --write", flush=True)
        token = _run("token", "create", "--write")
        print(f"{token[:12]}... (it names the server's key and is a secret)")
        words = ["serve", str(folder / "served"), "--tls", "--writable", "--port", "0"]
        print("$ mpx serve DIR --tls --writable --port 0", flush=True)
        with subprocess.Popen([*MPX, *words], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout
                ready = server.stdout.readline()
                print(ready, end="", flush=True)
                return _copies(ready.split()[2], token, source, back)
            finally:
                server.terminate()


def _copies(url: str, token: str, source: Path, back: Path) -> int:
    os.environ["MPX_TOKEN"] = token
    fine = True
    for one, other in ((str(source), f"{url}data.bin"), (f"{url}data.bin", str(back))):
        print(f"\n$ MPX_TOKEN=... mpx copy {one} {other}", flush=True)
        fine = subprocess.run([*MPX, "copy", one, other], check=False).returncode == 0 and fine
    fine = fine and source.read_bytes() == back.read_bytes()
    token_id = _run("token", "list").split()[0]
    _run("token", "revoke", token_id)
    print(f"\n$ mpx token revoke {token_id}; mpx list {url}", flush=True)
    is_over = subprocess.run([*MPX, "list", url], check=False).returncode == 5
    print(f"\n{VERDICTS[fine]}" + ("" if is_over else "; BUT THE TOKEN STILL HOLDS"))
    return 0 if fine and is_over else 1


def _run(*words: str) -> str:
    done = subprocess.run([*MPX, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
