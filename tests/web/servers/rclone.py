"""The WebDAV server of rclone, for everybody; it says that it has made a folder which was there."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_ports
from install_peers import find_peer
from web.servers.site import ServerProcess, WebSite


@contextlib.contextmanager
def rclone_site(folder: Path) -> Iterator[WebSite]:
    """Serve a folder while in the `with` block."""
    state = folder.parent / f"{folder.name}.rclone"
    state.mkdir()
    port = free_ports(1)[0]
    options = ["--config", str(state / "rclone.conf"), "--cache-dir", str(state / "cache")]
    command = [find_peer("rclone"), "serve", "webdav", str(folder), "--addr", f"127.0.0.1:{port}", *options]
    site = WebSite(folder, f"dav://localhost:{port}/", port, ServerProcess(command, state / "log"))
    with site.running():
        yield site
