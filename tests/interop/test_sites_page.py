"""The commands of docs/sites.md, as they are written there, against real servers of each kind."""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from gfal.fake_srm import FakeSrm
from grids import shared_grid
from install_peers import GFAL, find_peer
from interop.trees import names
from sites import grid_site, make
from web.servers.moto import moto_site
from web.servers.nginx import nginx_site
from web.servers.s3_site import KEY_ID, REGION, SECRET, S3Site
from web.servers.seaweedfs import seaweedfs_site
from web.servers.xrootd import XrootdSite
from web.shared_servers import SharedServers, with_environment
from web.web_command import mpx_there

PAGE = Path(__file__).resolve().parents[2] / "docs/sites.md"
FILES = {"a": 1, "sub/b": 70_000, "sub/c": 0}


def commands(title: str) -> list[str]:
    """The three of the section whose title begins so, without what is said of them."""
    section = next(each for each in PAGE.read_text().split("\n## ")[1:] if each.startswith(title))
    lines = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert lines
    found = [re.split(r"\s{2,}", line)[0] for line in lines[1].splitlines()]
    assert len(found) == 3
    return found


def run(command: str, *places: tuple[str, str]) -> str:
    """Run a command with what stands for the servers of the page; return what it printed."""
    for given, there in places:
        command = command.replace(given, there)
    program, *words = shlex.split(command)
    assert program == "mpx" and "example.org" not in command
    ended = mpx_there(*words)
    assert ended.code == 0, (command, ended.err)
    return ended.out


def make_tree(folder: Path) -> None:
    for name, size in FILES.items():
        make(folder / name, size)


def same(one: Path, other: Path) -> bool:
    return names(one) == names(other) and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in FILES
    )


@pytest.fixture(autouse=True)
def in_its_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


def test_storage_of_wlcg(here: Path, web_servers: SharedServers) -> None:
    shown, down, up = commands("WLCG")
    server = web_servers.get("xrootd")
    assert isinstance(server, XrootdSite)
    (here / "token").touch(0o600)
    (here / "token").write_text(server.issuer.token())
    given = {"BEARER_TOKEN": "", "BEARER_TOKEN_FILE": str(here / "token")}
    with web_servers.site("xrootd") as site, with_environment(given):
        for folder in ("vo/data", "vo/results"):
            make_tree(site.folder / folder / "run7")
        site.hand_over()
        place = ("davs://se.example.org:1094/", site.url)
        assert "run7/" in run(shown, place)
        run(down, place)
        assert same(here / "run7", site.folder / "vo/data/run7")
        make(here / "run7/new", 5)
        run(up, place)
        assert (site.folder / "vo/results/run7/new").read_bytes() == (here / "run7/new").read_bytes()


def test_srm_and_others_by_gfal2(here: Path, tmp_path: Path, web_servers: SharedServers) -> None:
    find_peer(GFAL)
    shown, down, between = commands("SRM")
    (tmp_path / "grid").mkdir()
    with (
        web_servers.site("nginx") as web,
        grid_site(tmp_path / "grid") as grid,
        FakeSrm(shared_grid(), grid.folder, grid.url) as srm,
    ):
        for folder in ("vo/data/run7", "data/run7"):
            make_tree(grid.folder / folder)
        grid.hand_over()
        (web.folder / "vo/results").mkdir(parents=True)
        web.hand_over()
        assert "run7/" in run(shown, ("srm://se.example.org/", srm.url))
        run(down, ("srm://se.example.org/", srm.url))
        assert same(here / "run7", grid.folder / "vo/data/run7")
        places = ("gsiftp://dtn.example.org/", grid.url), ("davs://se.example.org:1094/", web.url)
        run(between, *places)
        assert same(web.folder / "vo/results/run7", grid.folder / "data/run7")


def test_an_nginx_of_ones_own(here: Path, tmp_path: Path) -> None:
    """As the page configures it; and what it says that is lost there."""
    said = re.search(r"An nginx of your own.*?```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert said
    (tmp_path / "served").mkdir()
    make_tree(here / "run7")
    make(here / "run7/.hidden", 5)
    with nginx_site(tmp_path / "served", tls=True, dav_settings=said[1]) as site:
        for words in (("run7", f"{site.url}below/run7"), (f"{site.url}below/run7", "back")):
            ended = mpx_there("copy", "-r", "--ca", str(site.ca), *words)
            assert ended.code == 0, ended.err
        assert names(site.folder / "below/run7") == names(here / "run7")
    (here / "run7/.hidden").unlink()
    assert same(here / "back", here / "run7")


def test_an_archive(here: Path, web_servers: SharedServers) -> None:
    with web_servers.site("https archive") as archive:
        file, listed, signed = commands("HTTPS")
        genomes = ("https://archive.example.org/", archive.url)
        make(archive.folder / "genomes/hg38.fa.gz", 3_000_000)
        make(archive.folder / "download/x.tar", 100)
        (here / "urls.txt").write_text(f"{archive.url}genomes/hg38.fa.gz\n{archive.url}download/x.tar\n")
        run(file, genomes)
        run(listed)
        run(signed, ("https://host.example.org/", archive.url))
        for name, source in {
            "hg38.fa.gz": "genomes/hg38.fa.gz",
            "genomes/hg38.fa.gz": "genomes/hg38.fa.gz",
            "genomes/x.tar": "download/x.tar",
            "x.tar": "download/x.tar",
        }.items():
            assert (here / name).read_bytes() == (archive.folder / source).read_bytes()


@pytest.fixture(params=[moto_site, seaweedfs_site])
def s3(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Site]:
    """A server of S3, and a user whose profile `science` has its keys."""
    make_site: Callable[[Path], AbstractContextManager[S3Site]] = request.param
    (tmp_path / "state").mkdir()
    with make_site(tmp_path / "state") as site:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        keys = f"aws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\nregion = {REGION}\n"
        for profile, settings in (
            ("AWS_CONFIG_FILE", f"[profile science]\nendpoint_url = {site.url}\n"),
            ("AWS_SHARED_CREDENTIALS_FILE", f"[science]\n{keys}[default]\n{keys}"),
        ):
            (tmp_path / profile).write_text(settings)
            monkeypatch.setenv(profile, str(tmp_path / profile))
        yield site


def test_s3(s3: S3Site, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, up, down = commands("S3")
    client = s3.client
    for bucket in ("public", "bucket"):
        client.create_bucket(Bucket=bucket)
    client.put_object(Bucket="public", Key="genomes/hg38", Body=b"12345")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    assert "genomes/" in run(shown, ("open-data", "public"))
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    make_tree(here / "run7")
    run(up)
    (here / "run7").rename(here / "sent")
    run(down, ("https://s3.example.org", s3.url))
    assert same(here / "run7", here / "sent")


def test_gridftp(here: Path, tmp_path: Path) -> None:
    shown, down, between = commands("GridFTP")
    with ExitStack() as held:
        sites = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            sites.append(held.enter_context(grid_site(tmp_path / name)))
        one, other = sites
        make_tree(one.folder / "run7")
        one.hand_over()
        other.hand_over()
        place = ("gsiftp://dtn.example.org/data/", one.url)
        assert "run7/" in run(shown, place)
        run(down, place)
        assert same(here / "run7", one.folder / "run7")
        a, b = ("gsiftp://a.example.org/data/", one.url), ("gsiftp://b.example.org/data/", other.url)
        run(between, a, b)
        assert same(other.folder / "run7", one.folder / "run7")
