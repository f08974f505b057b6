"""vsftpd: a plain FTP server without MODE E, MLST and CKSM, for anonymous users only."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from install_peers import find_peer
from interop.foreign_servers import ForeignServer


class VsFtpd(ForeignServer):
    """vsftpd, whose root is the folder that `root` is in: it serves nobody a root that he may write in."""

    def __init__(self, root: Path, settings: Mapping[str, str | int] | None = None) -> None:
        super().__init__(root)
        self._settings = dict(settings or {})

    @property
    def url(self) -> str:
        return f"ftp://127.0.0.1:{self.port}/{self.root.name}/"

    def command(self) -> list[str]:
        empty = self.state / "empty"
        empty.mkdir(exist_ok=True)
        settings = {
            "listen": "YES", "listen_address": "127.0.0.1", "listen_port": self.port, "background": "NO",
            "anonymous_enable": "YES", "local_enable": "NO", "no_anon_password": "YES",
            "anon_root": self.root.parent, "write_enable": "YES", "anon_upload_enable": "YES",
            "anon_mkdir_write_enable": "YES", "anon_other_write_enable": "YES", "anon_umask": "022",
            "seccomp_sandbox": "NO", "secure_chroot_dir": empty,
            **self._settings,
        }  # fmt: skip
        configuration = self.state / "vsftpd.conf"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return [find_peer("vsftpd"), str(configuration)]


@pytest.fixture
def vsftpd(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a folder, without a slash at its end, and that folder."""
    with serving(tmp_path) as served:
        yield served


@contextlib.contextmanager
def serving(tmp_path: Path, **settings: str | int) -> Iterator[tuple[str, Path]]:
    """As the fixture, with further settings."""
    pub = tmp_path / "ftp/pub"
    pub.mkdir(parents=True)
    with VsFtpd(pub, settings) as server:
        yield server.url.rstrip("/"), pub


def session_pids(pub: Path) -> list[int]:
    """The processes of the server of this folder that serve a client each."""
    configuration = os.fsencode(pub.parent / "pub.VsFtpd/vsftpd.conf")
    found: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if configuration in (folder / "cmdline").read_bytes().split(b"\0"):
                    # The name in parentheses may hold anything, so look behind the last one.
                    parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
                    found[int(folder.name)] = int(parent)
    return [pid for pid, parent in found.items() if parent in found]
