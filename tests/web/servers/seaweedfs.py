"""SeaweedFS with its S3 gateway, in one process: it checks signatures, and stores on disk."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_ports
from install_peers import find_peer
from web.servers.s3_site import KEY_ID, SECRET, S3Site
from web.servers.site import ServerProcess

_PARTS = ("master", "volume", "filer", "s3")  # each listens on two ports, one of them of gRPC


@contextlib.contextmanager
def seaweedfs_site(state: Path) -> Iterator[S3Site]:
    """SeaweedFS while in the `with` block; `state`: its folder. The bucket `public` is open to all."""
    data, keys = state / "data", state / "keys.json"
    data.mkdir()
    user = {"name": "user", "credentials": [{"accessKey": KEY_ID, "secretKey": SECRET}], "actions": ["Admin"]}
    anybody = {"name": "anonymous", "actions": ["Read:public", "List:public"]}
    keys.write_text(json.dumps({"identities": [user, anybody]}))
    first, _ = free_ports(2 * len(_PARTS))
    ports = [
        word
        for place, part in enumerate(_PARTS)
        for word in (f"-{part}.port={first + 2 * place}", f"-{part}.port.grpc={first + 2 * place + 1}")
    ]
    small = ["-master.volumeSizeLimitMB=32", "-volume.max=0", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    quiet = ["-master.telemetry=false", "-master.electionTimeout=1s", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command = [
        find_peer("weed"),
        "server",
        f"-dir={data}",
        "-s3",
        f"-s3.config={keys}",
        *quiet,
        *ports,
        *small,
    ]
    port = first + 2 * _PARTS.index("s3")
    with S3Site(port, ServerProcess(command, state / "log", folder=state)).running() as site:
        yield site
