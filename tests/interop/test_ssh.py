"""Copies over the user's own ssh: a private sshd on loopback, our server at its other end."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.ssh_copies import copied, refused, there
from interop.sshd import HOST, PrivateSshd, private_sshd
from mpx_command import mpx, running
from older_python import older_python
from sites import make

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateSshd]:
    with private_sshd("Banner /etc/debian_version") as sshd:
        yield sshd


@pytest.fixture
def sshd(server: PrivateSshd) -> PrivateSshd:
    server.configure()
    return server


def program(folder: Path, script: str) -> str:
    """Make a program at the other end that does this, and then is mpx; return its path."""
    path = folder / "remote-mpx"
    path.write_text(f'#!/bin/sh\n{script} {sys.executable} -m mpx "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return program(tmp_path, "exec")


@pytest.mark.parametrize("size", [0, 1, 20 * MIB + 7])
def test_a_file_goes_both_ways(sshd: PrivateSshd, tmp_path: Path, remote: str, size: int) -> None:
    source = make(tmp_path / "source", size)
    copied(source, there(tmp_path / "far"), "--remote-mpx", remote)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()
    copied(f"ssh://{HOST}{tmp_path}/far", tmp_path / "back", "--remote-mpx", remote)
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_a_tree_with_awkward_names_and_links(sshd: PrivateSshd, tmp_path: Path, remote: str) -> None:
    names = ["plain", "with blanks", "-rf", "it's", '"; touch hit; "', "$(touch hit)", "a\udcffb", "*?"]
    for name in names:
        make(tmp_path / "tree" / "sub" / name, 100)
    copied("-r", tmp_path / "tree", there(tmp_path / "far"), "--remote-mpx", remote)
    copied("-r", there(tmp_path / "far"), tmp_path / "back", "--remote-mpx", remote)
    for name in names:
        sent = (tmp_path / "tree" / "sub" / name).read_bytes()
        assert (tmp_path / "far" / "sub" / name).read_bytes() == sent
        assert (tmp_path / "back" / "sub" / name).read_bytes() == sent
    assert not list(tmp_path.rglob("hit"))


def test_names_are_relative_to_home_and_links_are_followed(
    sshd: PrivateSshd, tmp_path: Path, remote: str
) -> None:
    home = Path(
        subprocess.run(["ssh", HOST, "echo ~"], capture_output=True, check=True, text=True).stdout.strip()
    )
    (home / "a folder").mkdir()
    make(tmp_path / "real" / "file", 10)
    (tmp_path / "link").symlink_to(tmp_path / "real")  # an absolute one, as accounts often have
    copied(there(tmp_path / "link" / "file"), tmp_path / "got", "--remote-mpx", remote)
    listed = mpx("list", f"ssh://{HOST}/~/", "--remote-mpx", remote)
    assert listed.code == 0, listed.err
    assert "a folder/" in listed.out.splitlines()
    relative = os.path.relpath(tmp_path / "real" / "file", home)
    copied(f"{HOST}:{relative}", tmp_path / "again", "--remote-mpx", remote)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "real" / "file").read_bytes()


def test_what_a_profile_prints_does_no_harm(sshd: PrivateSshd, tmp_path: Path) -> None:
    noisy = program(tmp_path, "echo Welcome; echo mpx-stdio; printf 'no end'; exec")
    make(tmp_path / "source", 1000)
    copied(tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", noisy)
    assert (tmp_path / "far").read_bytes() == (tmp_path / "source").read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network of its own")
@pytest.mark.parametrize("way", ["up", "down"])
def test_where_nothing_answers_directly_all_goes_through_ssh(
    sshd: PrivateSshd, tmp_path: Path, way: str
) -> None:
    alone = program(tmp_path, "exec unshare -n")  # its ports are in another network
    source = make(tmp_path / "source", 30 * MIB + 1)
    near, far = tmp_path / "near", there(tmp_path / "far")
    if way == "up":
        copied(source, far, "--remote-mpx", alone)
        assert (tmp_path / "far").read_bytes() == source.read_bytes()
    else:
        copied(there(source), near, "--remote-mpx", alone)
        assert near.read_bytes() == source.read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network of its own")
def test_a_listing_that_goes_through_ssh_has_an_end(sshd: PrivateSshd, tmp_path: Path) -> None:
    alone = program(tmp_path, "exec unshare -n")
    for number in range(300):
        make(tmp_path / "tree" / f"file {number}")
    listed = mpx("list", f"ssh://{HOST}{tmp_path}/tree", "--remote-mpx", alone)
    assert (listed.code, len(listed.out.splitlines())) == (0, 300), listed.err
    copied("-r", there(tmp_path / "tree"), tmp_path / "near", "--remote-mpx", alone)
    assert len(list((tmp_path / "near").iterdir())) == 300


def test_ports_for_direct_connections(
    sshd: PrivateSshd, tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from free_ports import free_ports

    first, last = free_ports(3)
    make(tmp_path / "source", 8 * MIB)
    logged = program(tmp_path, f"env >> {tmp_path}/environment; exec")
    copied(
        *(tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", logged),
        *("--data-ports", f"{first}-{last}", "--report", tmp_path / "report"),
    )
    assert (tmp_path / "far").read_bytes() == (tmp_path / "source").read_bytes()


def test_a_lost_connection_is_opened_again(
    sshd: PrivateSshd, tmp_path: Path, remote: str, eventually: Callable[..., None]
) -> None:
    source = make(tmp_path / "source", 12 * MIB)
    words = ("copy", source, there(tmp_path / "far"), "--remote-mpx", remote, "--rate", "60Mbit/s")
    with running(*words) as copy:
        eventually(lambda: list(tmp_path.glob(".far*.part")))
        sessions = sshd.sessions()
        assert sessions
        for session in sessions:
            os.kill(session, signal.SIGKILL)
        assert copy.wait(120) == 0
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


def test_a_copy_that_was_killed_goes_on_and_leaves_no_server(
    sshd: PrivateSshd, tmp_path: Path, remote: str, eventually: Callable[..., None]
) -> None:
    source = make(tmp_path / "source", 12 * MIB)
    words = (source, there(tmp_path / "far"), "--remote-mpx", remote)
    with running("copy", *words, "--rate", "8Mbit/s") as copy:
        eventually(lambda: list(tmp_path.glob(".far*.part")))
        assert "serve" in commands_of(remote)
        copy.kill()
        copy.wait(240)
    eventually(lambda: not commands_of(remote))
    copied(*words)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


def commands_of(program: str) -> str:
    """The command lines of processes that have this program in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if program in words and "mpx copy" not in words and str(os.getpid()) not in path.parts:
                found.append(words)
    servers = [words for words in found if "serve --stdio" in words]
    return "\n".join(servers)


def test_other_users_reach_nothing_of_a_running_server(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    (tmp_path / "temporary").mkdir()
    remote = program(tmp_path, f"TMPDIR={tmp_path}/temporary exec")
    source = make(tmp_path / "source", 6 * MIB)
    words = ("copy", source, there(tmp_path / "far"), "--remote-mpx", remote, "--rate", "12Mbit/s")
    with running(*words) as copy:
        eventually(lambda: list((tmp_path / "temporary").glob("mpx-serve-*/lanes")))
        (folder,) = (tmp_path / "temporary").glob("mpx-serve-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        for path in Path(tempfile.gettempdir()).glob("mpx-ssh-*"):
            assert path.stat().st_mode & 0o777 == 0o700
        if os.geteuid() == 0:
            code = f"import socket; socket.socket(socket.AF_UNIX).connect('{folder}/lanes')"
            nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "python3", "-c", code]
            assert b"Permission" in subprocess.run(nobody, capture_output=True, check=False).stderr
        assert copy.wait(120) == 0
    eventually(lambda: not list((tmp_path / "temporary").iterdir()))


def test_a_server_that_is_told_to_end_leaves_nothing_and_the_copy_goes_on(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    remote = program(tmp_path, f"echo $$ >>{tmp_path}/pids; TMPDIR={temporary} exec")
    source = make(tmp_path / "source", 12 * MIB)
    words = ("copy", source, there(tmp_path / "far"), "--remote-mpx", remote, "--rate", "60Mbit/s")
    with running(*words) as copy:
        eventually(lambda: list(tmp_path.glob(".far*.part")))
        os.kill(int((tmp_path / "pids").read_text().split()[0]), signal.SIGTERM)
        assert copy.wait(120) == 0
    assert (tmp_path / "far").read_bytes() == source.read_bytes()
    eventually(lambda: not list(temporary.iterdir()))


def test_neither_names_nor_secrets_stand_in_any_command_line(
    sshd: PrivateSshd, tmp_path: Path, remote: str, eventually: Callable[..., None]
) -> None:
    source = make(tmp_path / "telltale-source", 6 * MIB)
    seen: set[bytes] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    words = path.read_bytes()
                    if b"ssh" in words or b"serve" in words:
                        seen.add(words)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        with running(
            "copy", source, there(tmp_path / "telltale-far"), "--remote-mpx", remote, "--rate", "60Mbit/s"
        ) as copy:
            assert copy.wait(120) == 0
    finally:
        over.set()
        watching.join()
    of_ssh = [words for words in seen if b"ControlPath" in words or b"--stdio" in words]
    assert of_ssh
    assert not [words for words in of_ssh if b"telltale" in words or b"PRIVATE" in words]


# --- what goes wrong -------------------------------------------------------------------------------


def test_who_is_not_let_in_is_told(sshd: PrivateSshd, tmp_path: Path, remote: str) -> None:
    sshd.configure("IdentityFile /dev/null", "PreferredAuthentications hostbased", "BatchMode yes")
    make(tmp_path / "source")
    said = refused(5, tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", remote)
    assert re.search(rf"ssh to {HOST}: .*Permission denied.*; try: ssh {HOST} true", said)


def test_an_unknown_key_of_the_host_is_told(sshd: PrivateSshd, tmp_path: Path, remote: str) -> None:
    known = (sshd.folder / "known").read_text()
    (sshd.folder / "known").write_text("")
    sshd.configure("BatchMode yes", "StrictHostKeyChecking yes")
    make(tmp_path / "source")
    try:
        said = refused(5, tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", remote)
    finally:
        (sshd.folder / "known").write_text(known)
    assert "Host key verification failed" in said


@pytest.mark.parametrize(
    ("setting", "words"), [("HostName nowhere.invalid", "resolve"), ("Port 1", "refused")]
)
def test_a_host_that_is_not_there_is_told(
    sshd: PrivateSshd, tmp_path: Path, remote: str, setting: str, words: str
) -> None:
    text = sshd.client_config.read_text().replace(f"Host {HOST}", f"Host {HOST}\n {setting}\nHost {HOST}")
    sshd.client_config.write_text(text)
    make(tmp_path / "source")
    said = refused(6, tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", remote, "--retries", "0")
    assert words in said


def test_where_there_is_no_mpx_the_ways_out_are_told(sshd: PrivateSshd, tmp_path: Path) -> None:
    make(tmp_path / "source")
    said = refused(2, tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", "/nowhere/mpx")
    assert "--remote-mpx" in said
    assert "--bootstrap" in said


def test_a_full_quota_is_told(sshd: PrivateSshd, tmp_path: Path) -> None:
    limited = program(tmp_path, "ulimit -f 100; trap '' XFSZ; exec")
    make(tmp_path / "source", 4 * MIB)
    said = refused(9, tmp_path / "source", there(tmp_path / "far"), "--remote-mpx", limited)
    assert "File too large" in said


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x:y", "a b:y", "a;b:y", "$(x):y", "u ser@host:y", "-l@host:y", "`x`@h:y"]
)
def test_what_ssh_could_take_for_something_else_is_refused(text: str, tmp_path: Path) -> None:
    make(tmp_path / "source")
    done = mpx("copy", "--", tmp_path / "source", text)
    assert done.code == 2
    assert "is not one that ssh is given" in done.err


def test_a_local_file_of_that_name_is_in_the_way(tmp_path: Path) -> None:
    make(tmp_path / f"{HOST}:file")
    done = mpx("copy", f"{HOST}:file", "elsewhere", folder=tmp_path)
    assert done.code == 2
    assert f"./{HOST}:file" in done.err
    assert f"ssh://{HOST}/~/file" in done.err


# --- a server that is sent -------------------------------------------------------------------------


def caches(tmp_path: Path) -> str:
    """Have the other end keep its cache in a folder of the test; return the Python there."""
    path = tmp_path / "remote-python"
    path.write_text(f'#!/bin/sh\nXDG_CACHE_HOME={tmp_path}/cache exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_server_is_sent_once(sshd: PrivateSshd, tmp_path: Path) -> None:
    source, python = make(tmp_path / "source", 3 * MIB), caches(tmp_path)
    words = ("--bootstrap", "--remote-python", python)
    copied(source, there(tmp_path / "far"), *words)
    (kept,) = (tmp_path / "cache" / "mpx").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    before = kept.stat().st_mtime_ns
    copied(there(tmp_path / "far"), tmp_path / "back", *words)
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    assert kept.stat().st_mtime_ns == before
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")  # damaged
    copied(there(tmp_path / "far"), tmp_path / "again", *words)
    assert (tmp_path / "again").read_bytes() == source.read_bytes()
    copied(there(tmp_path / "far"), tmp_path / "once", "--bootstrap-once", "--remote-python", python)
    assert (tmp_path / "once").read_bytes() == source.read_bytes()
    assert not list((tmp_path / "cache" / "mpx").iterdir())


def test_where_nothing_can_be_kept_it_runs_from_memory(sshd: PrivateSshd, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the cache should be")
    source = make(tmp_path / "source", 1000)
    words = ("--bootstrap", "--remote-python", caches(tmp_path))
    copied(source, there(tmp_path / "far"), *words)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


def test_a_missing_python_is_told(sshd: PrivateSshd, tmp_path: Path) -> None:
    make(tmp_path / "source")
    words = ("--bootstrap", "--remote-python", "/nowhere/python3")
    assert "--remote-python" in refused(2, tmp_path / "source", there(tmp_path / "far"), *words)


def lacking(tmp_path: Path, module: str) -> str:
    """A Python at the other end that was built without a module."""
    path = tmp_path / "lacking"
    without = f"import sys; sys.modules['{module}'] = None; exec(sys.argv.pop(1))"
    path.write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} -I -c "{without}" "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("module", ["_ssl", "_ctypes", "logging"])
def test_what_python_lacks_is_told(sshd: PrivateSshd, tmp_path: Path, module: str) -> None:
    """Also what shows only after the other end has answered."""
    words = ("--bootstrap-once", "--remote-python", lacking(tmp_path, module), "--retries", "0")
    said = refused(6, make(tmp_path / "source"), there(tmp_path / "far"), *words)
    assert f"import of {module} halted" in said


def test_python_39_runs_it(sshd: PrivateSshd, tmp_path: Path) -> None:
    python = os.environ.get("MPX_TEST_PYTHON39") or older_python()
    if not python:
        pytest.skip("no Python 3.9 here")
    source = make(tmp_path / "tree" / "source", 5 * MIB)
    make(tmp_path / "tree" / "sub" / "small", 10)
    words = ("--bootstrap-once", "--remote-python", python)
    copied("-r", tmp_path / "tree", there(tmp_path / "far"), *words)
    copied("-r", there(tmp_path / "far"), tmp_path / "back", *words)
    assert (tmp_path / "back" / "source").read_bytes() == source.read_bytes()
    assert (tmp_path / "back" / "sub" / "small").exists()
