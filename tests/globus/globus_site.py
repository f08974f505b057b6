"""A collection as an endpoint under test: the service of ours, nginx as its HTTPS, and a client let in."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from globus.fake_globus import CLIENT_ID, ONE, SECRET, fake_globus
from sites import Site
from web.servers.nginx import nginx_site
from web.shared_servers import LIKE_ALL, with_environment


@contextlib.contextmanager
def globus_site(folder: Path) -> Iterator[Site]:
    """A collection whose root is a folder."""
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as held:
        fake, url = held.enter_context(fake_globus({ONE: folder}))
        site = held.enter_context(nginx_site(folder, tls=True))
        fake.about[ONE] = {"https_server": f"https://localhost:{site.port}"}
        given = {
            "GLOBUS_SDK_SERVICE_URL_TRANSFER": url,
            "GLOBUS_SDK_SERVICE_URL_AUTH": url,
            "GLOBUS_CLIENT_ID": CLIENT_ID,
            "GLOBUS_CLIENT_SECRET": SECRET,
            "SSL_CERT_FILE": str(site.ca),
        }
        held.enter_context(with_environment(given))
        limits = {**LIKE_ALL, "shows_links": True, "stores_any_bytes": False}
        made = Site(folder, f"globus://{ONE}/", carries_lines=True, **limits)
        try:
            yield made
        finally:
            for end in made.opened:
                end.close()
