"""nginx and Apache on a host of a lab, and the commands of tools that copy to and from them as people do."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from install_peers import find_peer
from mpx_lab import namespace
from mpx_lab.cleanup import end
from mpx_lab.lab_host import LabHost

from mpx.errors import MpxError

MPX, MPX_FAST, ARIA2_16, ARIA2, CURL, RCLONE, RCLONE_32 = (
    "mpx",
    "mpx --policy fast",
    "aria2c -x16 -k1M",
    "aria2c",
    "curl",
    "rclone",
    "rclone --transfers 32",
)
STARTS_S, LOOK_S = 60.0, 0.2
_DAV_MODULE = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
_CONFIGURATION = """
daemon off; worker_processes 2; pid {state}/pid; user root;
load_module {module};
events {{ worker_connections 1024; }}
http {{
access_log off; client_max_body_size 0; sendfile on;
client_body_temp_path {state}/body; proxy_temp_path {state}/p; fastcgi_temp_path {state}/f;
uwsgi_temp_path {state}/u; scgi_temp_path {state}/s;
server {{ listen {address}:80; root {served};
location / {{ dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS;
dav_access user:rw group:r all:r; }} }} }}
"""
_APACHE_MODULES = Path("/usr/lib/apache2/modules")
_APACHE = """
ServerRoot {state}
DefaultRuntimeDir {state}
Mutex file:{state} default
PidFile pid
ErrorLog log
ServerName localhost
Listen {address}:80
{modules}
User {user}
Group {user}
LimitRequestBody 0
DocumentRoot {served}
DavLockDB {state}/locks
<Directory {served}>
Require all granted
Dav On
</Directory>
"""
NGINX, APACHE = "nginx", "apache"


@contextlib.contextmanager
def nginx(host: LabHost, folder: Path, served: Path) -> Iterator[str]:
    """Run nginx with WebDAV on a host; yields the URL of what it serves, without a slash at its end."""
    state = folder / "nginx"
    state.mkdir()
    address = host.addresses[0]
    text = _CONFIGURATION.format(state=state, served=served, address=address, module=_DAV_MODULE)
    (state / "nginx.conf").write_text(text)
    words = [find_peer("nginx"), "-e", "stderr", "-p", str(state), "-c", str(state / "nginx.conf")]
    with serving(host, words, f"http://{address}") as url:
        yield url


@contextlib.contextmanager
def apache(host: LabHost, folder: Path, served: Path) -> Iterator[str]:
    """Run Apache with mod_dav and its defaults on a host; see nginx."""
    state = folder / "apache"
    state.mkdir()
    user = "www-data"  # as it serves nobody as root
    for each in (state, served):
        shutil.chown(each, user)
    address = host.addresses[0]
    names = ("mpm_event", "authz_core", "dav", "dav_fs")
    modules = "\n".join(f"LoadModule {name}_module {_APACHE_MODULES}/mod_{name}.so" for name in names)
    text = _APACHE.format(state=state, served=served, address=address, modules=modules, user=user)
    (state / "apache.conf").write_text(text)
    words = [find_peer("apache2"), "-D", "FOREGROUND", "-f", str(state / "apache.conf")]
    with serving(host, words, f"http://{address}") as url:
        yield url


SERVERS = MappingProxyType({NGINX: nginx, APACHE: apache})
# Where it serves: Apache stores no parts of files, and has no locks, in the files that a simulated host sees
WORK_FOLDERS = MappingProxyType({NGINX: "/tmp", APACHE: "/dev/shm"})


@contextlib.contextmanager
def serving(host: LabHost, words: Sequence[str], url: str, **how: Any) -> Iterator[str]:
    """Run a server on a host, from when it answers; yields its URL. `how`: see subprocess.Popen."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with host.popen(words, **quiet, **how) as process:
        try:
            namespace.inside(host.netns, lambda: _await_answer(f"{url}/"))
            yield url
        finally:
            end([process.pid], 5.0)


def _await_answer(url: str) -> None:
    until_s = time.monotonic() + STARTS_S
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="OPTIONS"), timeout=1.0).close()
            return
        except urllib.error.HTTPError:
            return  # it wants a login, or says that there is nothing
        except OSError as error:
            if time.monotonic() > until_s:
                raise MpxError(f"the server does not answer at {url}: {error}") from None
            time.sleep(LOOK_S)  # a port has no event for who will listen there


def fetch(tool: str, url: str, target: Path, state: Path) -> list[str]:
    """Return the command that downloads one file; `state`: a folder for what tools keep."""
    aria2 = ["aria2c", "-q", "--file-allocation=none", "-d", str(target.parent), "-o", target.name]
    return {
        MPX: [*mpx(state), url, str(target)],
        MPX_FAST: [*mpx(state), "--policy", "fast", url, str(target)],
        ARIA2_16: [*aria2, "-x16", "-s16", "-k1M", url],
        ARIA2: [*aria2, url],
        CURL: ["curl", "-sf", "-o", str(target), url],
        RCLONE: ["rclone", "--config", f"{state}/rclone.conf", "copyurl", url, str(target)],
    }[tool]


def store(tool: str, source: Path, url: str, name: str, state: Path) -> list[str]:
    """Return the command that uploads one file."""
    return {
        MPX: [*mpx(state), str(source), f"{url}/{name}"],
        MPX_FAST: [*mpx(state), "--policy", "fast", str(source), f"{url}/{name}"],
        CURL: ["curl", "-sf", "-T", str(source), f"{url}/{name}"],
        RCLONE: [*_rclone(url, state, "copyto"), str(source), f":webdav:{name}"],
    }[tool]


def tree(tool: str, url: str, ends: Sequence[str], state: Path) -> list[str]:
    """Return the command that copies a tree; what is at the server is `:NAME`."""
    if tool == MPX:
        dav = url.replace("http://", "dav://", 1)
        return [*mpx(state), "-r", *(f"{dav}/{each[1:]}" if each[0] == ":" else each for each in ends)]
    more = ["--transfers", "32", "--checkers", "32"] if tool == RCLONE_32 else []
    names = [f":webdav:{each[1:]}" if each[0] == ":" else each for each in ends]
    return [*_rclone(url, state, "copy"), *more, *names]


def mpx(state: Path) -> list[str]:
    """Return the command of a copy without its ends; `state`: a folder for what it keeps."""
    return ["env", f"MPX_STATE_DIR={state}/mpx", sys.executable, "-m", "mpx", "copy", "-q"]


def _rclone(url: str, state: Path, verb: str) -> list[str]:
    return ["rclone", "--config", f"{state}/rclone.conf", "--webdav-url", f"{url}/", verb]


def environment() -> Mapping[str, str]:
    """Return the environment of the tools: as it is, without proxies."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
