"""Apache httpd with mod_dav and the event MPM."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_ports
from install_peers import find_peer
from interop.stock_server import open_to_everyone
from web.servers.host_certificate import host_certificate
from web.servers.site import ServerProcess, WebSite

MODULES = Path("/usr/lib/apache2/modules")
ACCOUNT, GROUP = "nobody", "nogroup"  # started by root it serves nobody as root
LOADED = ("mpm_event", "authz_core", "dav", "dav_fs", "ssl")


@contextlib.contextmanager
def apache_site(folder: Path, *, tls: bool = False, settings: str = "") -> Iterator[WebSite]:
    """Apache while in the `with` block; `settings`: more lines of its configuration."""
    program = find_peer("apache2")
    state = folder.parent / f"{folder.name}.apache"
    own = state / "own"  # where its workers write
    own.mkdir(parents=True)
    port = free_ports(1)[0]
    shown = host_certificate() if tls else None
    as_root = os.geteuid() == 0
    if as_root:
        open_to_everyone(folder)
        open_to_everyone(own)
    lines = [
        f"ServerRoot {state}",
        f"DefaultRuntimeDir {own}",
        f"Mutex file:{own} default",
        "PidFile pid",
        "ErrorLog log",
        "ServerName localhost",
        f"Listen 127.0.0.1:{port}",
        *(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in LOADED),
        *((f"User {ACCOUNT}", f"Group {GROUP}") if as_root else ()),
        "StartServers 1",
        "LimitRequestBody 0",
        f"DocumentRoot {folder}",
        f"DavLockDB {own}/locks",
        f"<Directory {folder}>",
        "Require all granted",
        "Dav On",
        "</Directory>",
    ]
    if shown:
        lines += ["SSLEngine on", f"SSLCertificateFile {shown.certificate}"]
        lines += [f"SSLCertificateKeyFile {shown.key}", "SSLSessionCache none"]
    configuration = state / "apache.conf"
    configuration.write_text("\n".join([*lines, settings, ""]))
    server = ServerProcess([program, "-D", "FOREGROUND", "-f", str(configuration)], state / "log")
    scheme = "davs" if tls else "dav"
    site = WebSite(folder, f"{scheme}://localhost:{port}/", port, server)
    site.ca = shown.ca if shown else None
    site.owner = ACCOUNT if as_root else ""
    with site.running():
        yield site
