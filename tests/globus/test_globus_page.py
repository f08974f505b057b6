"""The commands of docs/sites.md about Globus, as they are written there; the service is ours."""

import pytest
from globus.conftest import Collections
from globus.fake_globus import ONE, OTHER
from interop.test_sites_page import commands, make_tree, run, same
from web.servers.nginx import nginx_site
from web.shared_servers import with_environment

IDS = {"5fba1ae8-7d2e-4c5b-9d7e-3f1f2a6c0b11": ONE, "c0ffee00-1d3a-4f7e-8a5b-6b2e9d4c7a22": OTHER}


def test_the_commands(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    here = collections.one.parent
    monkeypatch.chdir(here)
    make_tree(collections.one / "data/run7")
    shown, between, down = commands("Globus")
    places = tuple(IDS.items())
    with nginx_site(collections.one, tls=True) as site, with_environment({"SSL_CERT_FILE": str(site.ca)}):
        collections.fake.about[ONE] = {"https_server": f"https://localhost:{site.port}"}
        assert "run7/" in run(shown, *places)
        run(between, *places)
        assert same(collections.other / "results/run7", collections.one / "data/run7")
        run(down, *places)
        assert same(here / "run7", collections.one / "data/run7")
