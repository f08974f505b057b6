"""WsgiDAV behind cheroot: a WebDAV server in Python, for everybody."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from free_ports import free_ports
from web.servers.host_certificate import host_certificate
from web.servers.site import ServerProcess, WebSite


@contextlib.contextmanager
def wsgidav_site(
    folder: Path, *, tls: bool = False, settings: Mapping[str, object] | None = None
) -> Iterator[WebSite]:
    """WsgiDAV while in the `with` block; `settings`: more of its configuration."""
    state = folder.parent / f"{folder.name}.wsgidav"
    state.mkdir()
    port = free_ports(1)[0]
    shown = host_certificate() if tls else None
    all_settings: dict[str, object] = {
        "host": "127.0.0.1",
        "port": port,
        "server": "cheroot",
        "provider_mapping": {"/": str(folder)},
        "simple_dc": {"user_mapping": {"*": True}},
        "verbose": 2,
        **(settings or {}),
    }
    if shown:
        all_settings["ssl_certificate"] = str(shown.certificate)
        all_settings["ssl_private_key"] = str(shown.key)
    configuration = state / "wsgidav.json"
    configuration.write_text(json.dumps(all_settings))
    command = [sys.executable, "-W", "ignore", "-m", "wsgidav.server.server_cli", "-c", str(configuration)]
    scheme = "davs" if tls else "dav"
    site = WebSite(folder, f"{scheme}://localhost:{port}/", port, ServerProcess(command, state / "log"))
    site.ca = shown.ca if shown else None
    with site.running():
        yield site
