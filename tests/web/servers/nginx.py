"""nginx with its WebDAV methods, or without them as a plain web server."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_ports
from install_peers import find_peer
from web.servers.host_certificate import host_certificate
from web.servers.site import ServerProcess, WebSite

DAV_MODULE = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
DAV = """
dav_methods PUT DELETE MKCOL COPY MOVE;
dav_ext_methods PROPFIND OPTIONS;
create_full_put_path off;
dav_access user:rw group:r all:r;
"""
# As its documentation has it: what is below a folder is served, and its name without the slash is not.
BELOW = """
location /dav/ {
root %s;
dav_methods PUT DELETE MKCOL COPY MOVE;
%s
create_full_put_path on;
}
"""
EXTENDED = "dav_ext_methods PROPFIND OPTIONS;"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # nginx makes a folder for each


@contextlib.contextmanager
def nginx_site(
    folder: Path,
    *,
    tls: bool = False,
    dav: bool = True,
    dav_settings: str = DAV,
    ipv6: bool = False,
    connections: int = 0,
    user_certificates: bool = False,
    settings: str = "",
    below: str | None = None,
) -> Iterator[WebSite]:
    """nginx while in the `with` block.

    `dav`: else files are only read, as http and https; `dav_settings`: how they are written. `ipv6`: it
    listens on ::1, too. `connections`: of all clients together, others are answered 503; 0 is no limit.
    `user_certificates`: it asks for one, in TLS. `settings`: more lines of its `server` block. `below`: not
    the folder is served but `dav` in it, as BELOW has it, with this line (EXTENDED, or nothing: it describes
    files by HEAD alone).
    """
    state = folder.parent / f"{folder.name}.nginx"  # on the file system of the folder: uploads are renamed
    state.mkdir()
    port = free_ports(1)[0]
    shown = host_certificate() if tls else None
    ssl = " ssl" if shown else ""
    served = [f"root {folder};", "location / {", dav_settings if dav else "", "}"]
    if below is not None:
        served = [BELOW % (folder, below)]
    lines = [f"listen 127.0.0.1:{port}{ssl};", *served]
    lines += [f"listen [::1]:{port}{ssl};"] if ipv6 else []
    lines += [f"limit_conn together {connections};"] if connections else []
    if shown:
        lines += [f"ssl_certificate {shown.certificate};", f"ssl_certificate_key {shown.key};"]
    if shown and user_certificates:
        lines += [f"ssl_client_certificate {shown.ca};", "ssl_verify_client on;"]
    configuration = state / "nginx.conf"
    configuration.write_text(
        "\n".join(
            [
                f"load_module {find_peer(DAV_MODULE)};" if dav else "",
                "user root;" if os.geteuid() == 0 else "",
                f"daemon off;\nworker_processes 2;\npid {state}/pid;\nerror_log stderr;",
                "events { worker_connections 1024; }",
                "http {",
                f"access_log {state}/access.log;",
                *(f"{name}_temp_path {state}/{name};" for name in TEMPORARY),
                "default_type application/octet-stream;",
                "client_max_body_size 0;",
                "limit_conn_zone $server_port zone=together:1m;",
                "server {",
                *lines,
                settings,
                "}\n}\n",
            ]
        )
    )
    command = [find_peer("nginx"), "-e", "stderr", "-p", str(state), "-c", str(configuration)]
    scheme = ("davs" if tls else "dav") if dav else ("https" if tls else "http")
    site = WebSite(folder, f"{scheme}://localhost:{port}/", port, ServerProcess(command, state / "log"))
    if shown:
        site.ca = shown.ca
    if shown and user_certificates:
        site.identity = (shown.grid.folder / "user.pem", shown.grid.folder / "user.key")
    with site.running():
        yield site
