"""A process that is confined: what it may still open. It is another one, as there is no way back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpx
from mpx.endpoints.confined import landlock_version, needed

PROGRAM = """
import json, os, sys, threading
sys.path.insert(0, {code!r})
from mpx.endpoints.confined import confine
os.chdir({folder!r})
held = open("outside/held", "r+")
told = [confine(["read", "read-file", "missing"], ["written"])]
def attempts():
    for what in (
        lambda: open("read/file").close(),
        lambda: open("read-file").close(),
        lambda: os.listdir("read"),
        lambda: open("/dev/null", "w").close(),
        lambda: open("written/new", "w").close(),
        lambda: held.write("1") and held.flush(),
        lambda: open("read/file", "r+").close(),
        lambda: open("read/new", "w").close(),
        lambda: os.unlink("read/file"),
        lambda: open("outside/held").close(),
        lambda: open("read/link").close(),
        lambda: open("/proc/self/fd/%d" % held.fileno()).close(),
        lambda: os.rename("outside/held", "outside/other"),
        lambda: os.mkdir("outside/folder"),
        lambda: os.listdir("outside"),
        lambda: open("/proc/%d/environ" % os.getppid()).close(),
    ):
        try:
            what()
        except PermissionError:
            told.append(False)
        else:
            told.append(True)
thread = threading.Thread(target=attempts)
thread.start()
thread.join()
print(json.dumps(told))
"""
ALLOWED, DENIED = 6, 10


def test_what_may_be_opened(here: Path) -> None:
    if not landlock_version():
        pytest.skip("this kernel has no Landlock")
    for name in ("read/file", "read-file", "outside/held"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_bytes(b"1")
    (here / "read/link").symlink_to(here / "outside/held")
    (here / "written").mkdir()
    code = str(Path(mpx.__file__).parents[1])
    words = [sys.executable, "-I", "-c", PROGRAM.format(code=code, folder=str(here))]
    told = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    assert told == [True, *[True] * ALLOWED, *[False] * DENIED]


def test_what_is_no_name_of_a_file_is_left_out(here: Path) -> None:
    """And never printed: it may be a secret."""
    os.mkfifo(here / "pipe")
    names = ["A" * 5000, "a/" * 3000, "\u20ac" * 200, str(here / "pipe"), "file/below"]
    (here / "file").write_bytes(b"1")
    code = str(Path(mpx.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {code!r}); from mpx.endpoints.confined import confine; "
    words = [sys.executable, "-I", "-c", program + f"print(confine({names!r}))"]
    ended = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{bool(landlock_version())}\n", "")


def test_links_among_credentials_may_be_followed(here: Path) -> None:
    """As of `~/.globus/usercert.pem`, or of a folder of CAs: rules count for where a file is."""
    for name in ("cas", "elsewhere"):
        (here / name).mkdir()
    (here / "elsewhere/ca.pem").write_bytes(b"1")
    (here / "cas/hash.0").symlink_to("../elsewhere/ca.pem")
    (here / "cas/gone.0").symlink_to("../elsewhere/gone")
    found = needed({"X509_CERT_DIR": str(here / "cas")})
    assert here.resolve() / "elsewhere/ca.pem" in found
    assert here.resolve() / "elsewhere" not in found


def test_what_variables_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    found = needed(
        {
            "X509_USER_PROXY": "/a/proxy",
            "X509_USER_KEY": "key.pem",
            "X509_CERT_DIR": "/a/cas",
            "XrdSecSSSKT": "/a/keys",
            "XRD_LOGLEVEL": "Debug",
            "KRB5CCNAME": "FILE:/a/tickets",
            "KRB5_CONFIG": "/a/krb5.conf:/b/krb5.conf",
            "BEARER_TOKEN": "/a/secret/that/is/no/name",
            "BEARER_TOKEN_FILE": "/a/token",
            "XDG_RUNTIME_DIR": "/run/user/1",
            "OTHER": "/a/other",
        }
    )
    named = {str(each) for each in found if str(each).startswith(("/a/", "/b/", "/run/user"))}
    credentials = {"/a/proxy", "/a/cas", "/a/keys", "/a/tickets", "/a/token"}
    runtime = {each for each in named if each.startswith("/run/user/1/bt_u")}
    assert len(runtime) == 1
    assert named == credentials | runtime | {"/a/krb5.conf", "/b/krb5.conf"}
    assert {Path("/home/alice/.globus"), Path("key.pem")} < set(found)
    assert not {Path("/"), Path(), Path("/home"), Path("/home/alice"), Path("/tmp"), Path("/dev")} & set(
        found
    )
