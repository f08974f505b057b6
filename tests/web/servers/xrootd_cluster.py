"""A cluster of XRootD, as large sites have it: its head leads to the server that has, or is to have, a file.

The token is put into the URL there (authz), and the head of this one has `http.desthttps`: it leads to https.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_ports
from install_peers import find_peer
from web.servers.private_network import within
from web.servers.site import LOOK_S, STARTED_WITHIN_S, ServerProcess
from web.servers.xrootd import AS_ACCOUNT, XrootdSite, state_of, xrootd_site

_PROBE = "of the cluster"
# Heads that begin at once, and lead writers to disks with less than 10 GB of room, too.
QUICK_AND_FULL = "cms.delay startup 1 servers 1 lookup 1\ncms.space min 1m 2m\n"


@contextlib.contextmanager
def xrootd_cluster(root: Path) -> Iterator[tuple[XrootdSite, XrootdSite]]:
    """Head and data server, with a network of their own, while in the `with` block."""
    meet = free_ports(1)[0]
    common = f"all.manager localhost:{meet}\n{QUICK_AND_FULL}http.desthttps yes\n"
    folders = [root / name for name in ("head", "data")]
    for folder in folders:
        folder.mkdir()
    with (
        xrootd_site(folders[0], more=f"all.role manager\n{common}") as head,
        _manager_of(head),
        within(head.namespace),
        xrootd_site(folders[1], beside=head, more=f"all.role server\n{common}") as data,
        _manager_of(data),
    ):
        _wait_until_it_leads(head, data)
        yield head, data


@contextlib.contextmanager
def _manager_of(site: XrootdSite) -> Iterator[None]:
    """The process that tells the head which files a server has; it works beside each of both."""
    state = state_of(site.folder)
    words = [*AS_ACCOUNT, find_peer("cmsd"), "-I", "v4", "-c", str(state / "xrootd.cfg")]
    manager = ServerProcess(words, state / "cmsd.log", folder=state)
    with within(site.namespace):
        manager.start(lambda: True)
    try:
        yield
    finally:
        manager.stop()


def _wait_until_it_leads(head: XrootdSite, data: XrootdSite) -> None:
    (data.folder / _PROBE).touch()
    until_s = time.monotonic() + STARTED_WITHIN_S
    headers = {"Authorization": f"Bearer {head.issuer.token()}"}
    while head.ask("GET", f"/{_PROBE.replace(' ', '%20')}", headers=headers).status not in (302, 307):
        assert time.monotonic() < until_s, f"the head leads nowhere: {head.server.said()}"
        time.sleep(LOOK_S)  # a head has no event for the servers that it has found
