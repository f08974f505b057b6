"""A cluster of two data servers by XRootD's own protocol: what replaces a file replaces it everywhere."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from free_ports import free_ports
from install_peers import find_peer
from web.servers.private_network import servers_folder
from web.servers.root_server import RootServer, root_server
from web.servers.site import LOOK_S, STARTED_WITHIN_S, ServerProcess
from web.servers.xrootd import ACCOUNT, AS_ACCOUNT
from web.servers.xrootd_cluster import QUICK_AND_FULL

import mpx as api
from mpx.errors import MpxError

LAYOUTS = {  # lines of the configuration of each data server
    "of their own": "",
    "shared": "oss.localroot {shared}\n",
    "shared, and the head knows": "oss.localroot {shared}\ncms.dfs lookup distrib\n",
}


@dataclass(frozen=True)
class Cluster:
    """Its head, which has no files, and the folders of two servers that have a file each, or one together."""

    head: RootServer
    folders: tuple[Path, ...]


@pytest.fixture(params=LAYOUTS)
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("BEARER_TOKEN", "")
    with contextlib.ExitStack() as held:
        root = held.enter_context(servers_folder())
        shared = root / "shared"
        shared.mkdir()
        common = f"all.manager localhost:{free_ports(1)[0]}\n{QUICK_AND_FULL}"
        of_servers = LAYOUTS[request.param].format(shared=shared)
        servers = []
        for name, role in (("head", "manager"), ("one", "server"), ("two", "server")):
            more = of_servers if role == "server" else of_servers.partition("\n")[2]
            server = held.enter_context(root_server(root / name, f"{common}all.role {role}\n{more}"))
            words = [*AS_ACCOUNT, find_peer("cmsd"), "-I", "v4", "-c", str(server.state / "xrootd.cfg")]
            manager = ServerProcess(words, server.state / "cmsd.log", folder=server.state)
            manager.start(lambda: True)
            held.callback(manager.stop)
            servers.append(server)
        head, one, two = servers
        folders = (shared,) if of_servers else (one.folder, two.folder)
        for folder in folders:
            (folder / "file").write_bytes(b"old")
            for path in (folder, folder / "file"):
                shutil.chown(path, ACCOUNT, ACCOUNT)
        _wait_until_it_knows(head, (one, two))
        yield Cluster(head, folders)


def _wait_until_it_knows(head: RootServer, servers: tuple[RootServer, RootServer]) -> None:
    until_s = time.monotonic() + STARTED_WITHIN_S
    words = ["xrdfs", f"localhost:{head.port}", "locate", "-r", "/file"]
    while True:
        said = subprocess.run(words, check=False, capture_output=True, text=True).stdout
        if all(str(server.port) in said for server in servers):
            return
        assert time.monotonic() < until_s, f"the head knows: {said}"
        time.sleep(LOOK_S)  # a head has no event for the servers that it has found


def test_what_replaces_a_file_replaces_it_everywhere(cluster: Cluster, here: Path) -> None:
    (here / "file").write_bytes(b"new one")
    report = api.copy(str(here / "file"), f"{cluster.head.url}file")
    assert report.status == "done"
    found = [path.read_bytes() for folder in cluster.folders for path in folder.iterdir()]
    assert found == [b"new one"]


def _folder(parent: Path, name: str) -> Path:
    folder = parent / "folder"
    folder.mkdir()
    (folder / name).touch()
    for path in (folder, folder / name):
        shutil.chown(path, ACCOUNT, ACCOUNT)
    return folder


@pytest.mark.parametrize("cluster", ["of their own"], indirect=True)
def test_what_one_server_cannot_list_is_not_left_out(cluster: Cluster, here: Path) -> None:
    """Not even unseen; but that a server has no such folder is in order."""
    one, two = cluster.folders
    url, options = f"{cluster.head.url}folder", api.CopyOptions(recursive=True)
    _folder(one, "first")
    report = api.copy(url, f"{here}/without", options)
    assert (report.status, report.files.total) == ("done", 1)
    folder = _folder(two, "second")
    report = api.copy(url, f"{here}/both", options)
    assert (report.status, report.files.total) == ("done", 2)
    shutil.chown(folder, "root", "root")
    folder.chmod(0o711)
    with pytest.raises(MpxError, match=r"not all servers of localhost:[0-9]+ have listed /folder"):
        api.copy(url, f"{here}/closed", options)
