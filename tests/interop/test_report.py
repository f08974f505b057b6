"""The JSON report: real ones against the schema that is shipped, and whether they tell the truth."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mpx_command import copied, mpx, refused
from sites import Site, make

import mpx as api

pytestmark = pytest.mark.peers
SCHEMA = json.loads(files("mpx").joinpath("report.schema.json").read_text())
KEYS_OF_THE_ISSUE = {
    "mpx", "status", "exit_code", "source", "destination", "files", "bytes", "duration_s", "goodput_bps",
    "checksum", "decisions", "timeline",
}  # fmt: skip
TALLY = ("total", "moved", "resumed", "skipped", "failed")


def read(path: Path) -> dict[str, Any]:
    """Return a report that fits the schema, and remove it."""
    report: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    assert set(report) >= KEYS_OF_THE_ISSUE
    assert report["mpx"] == api.__version__
    return report


def tally(*numbers: int) -> dict[str, int]:
    return dict(zip(TALLY, numbers, strict=True))


@pytest.fixture
def path(here: Path) -> Path:
    return here / "report.json"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs/report-format.md").read_text()
    within = [SCHEMA["$defs"][each]["properties"] for each in ("event", "interval")]
    keys = [*SCHEMA["properties"], *TALLY, *(key for each in within for key in each)]
    keys += SCHEMA["properties"]["settings"]["properties"]
    assert [key for key in keys if f"`{key}`" not in page] == []
    for result in SCHEMA["properties"]["checksum"]["properties"]["result"]["enum"]:
        assert f"`{result}`" in page


def test_up_and_down(far: Site, here: Path, path: Path) -> None:
    make(here / "a", 3_000_000)
    copied(mpx("copy", "--report", path, here / "a", far.url))
    up = read(path)
    assert (up["status"], up["exit_code"], up["error"]) == ("done", 0, None)
    assert (up["source"], up["destination"]) == (str(here / "a"), far.url)
    assert up["files"] == tally(1, 1, 0, 0, 0)
    assert up["bytes"] == tally(3_000_000, 3_000_000, 0, 0, 0)
    algorithm = "xxh3" if far.has_xxh3 else "adler32"
    assert up["checksum"] == {"algorithm": algorithm, "result": "verified", "bytes": {algorithm: 3_000_000}}
    assert up["goodput_bps"] == pytest.approx(3_000_000 * 8 / up["duration_s"], rel=0.05)
    assert up["timeline"][0]["t_s"] == 0
    assert up["timeline"][0]["congestion"]
    assert sum(each["arrived_bytes"] for each in up["intervals"]) == 3_000_000
    assert 0 < up["flow_began_s"] < up["duration_s"] and up["cpu_s"] > 0
    assert up["settings"]["policy"] == "fair"
    copied(mpx("copy", "--report", path, far.url_of("a"), here / "b"))
    down = read(path)
    assert sum(each["arrived_bytes"] for each in down["intervals"]) >= 3_000_000  # some twice
    assert {each["idle"] for each in down["intervals"]} == {None}
    assert down["files"] == tally(1, 1, 0, 0, 0)
    for told in (down["decisions"], *down["timeline"]):
        assert told["rtt_s"] > 0
        assert 0 < told["tcpi_rtt_s"] < 1
    assert down["timeline"][0]["congestion"] == ("cubic" if far.takes_congestion else None)


def test_everything_at_once(far: Site, here: Path, path: Path) -> None:
    for name in ("new", "same", "blocked"):
        make(here / "up" / name, 100)
    copied(mpx("copy", here / "up/same", far.url_of("dst/")))
    far.write("dst/blocked/x")
    (here / "up/nowhere").symlink_to("missing")
    refused(mpx("copy", "-r", "--report", path, here / "up", far.url_of("dst")), 10)
    report = read(path)
    assert (report["status"], report["exit_code"]) == ("failed", 10)
    assert report["files"] == tally(4, 1, 0, 2, 1)
    assert report["bytes"]["moved"] == 100
    assert [Path(entry["name"]).name for entry in report["failures"]] == ["blocked"]
    assert {Path(entry["name"]).name for entry in report["skipped"]} == {"same", "nowhere"}
    assert report["checksum"]["result"] == "verified"
    assert "1 of 4" in report["error"]


@pytest.mark.parametrize(
    ("options", "checksum"),
    [
        (["--checksum", "none"], {"algorithm": "none", "result": "unverified", "bytes": {"none": 10}}),
        (["--checksum", "sha256"], {"algorithm": "sha256", "result": "verified", "bytes": {"sha256": 10}}),
        (["--checksum", "md5"], {"algorithm": "md5", "result": "verified", "bytes": {"md5": 10}}),
        ([], {"algorithm": "sha256", "result": "verified", "bytes": {"sha256": 10}}),
        (["--overwrite", "never"], {"algorithm": "sha256", "result": "nothing moved", "bytes": {}}),
        (["--dry-run"], {"algorithm": "sha256", "result": "nothing moved", "bytes": {}}),
    ],
)
def test_what_the_checksum_says(
    stock: Site, here: Path, path: Path, options: list[str], checksum: dict[str, object]
) -> None:
    make(here / "a", 10)
    stock.write("a", b"old")
    copied(mpx("copy", *options, "--report", path, here / "a", stock.url))
    report = read(path)
    assert report["checksum"] == checksum
    assert report["dry_run"] == ("--dry-run" in options)


def test_within_this_host(here: Path, path: Path) -> None:
    make(here / "a", 10)
    copied(mpx("copy", "--report", path, "a", "b", folder=here))
    report = read(path)
    assert report["source"] == str(here / "a")
    assert (report["decisions"]["rtt_s"], report["decisions"]["congestion"]) == (None, None)


def test_failures_have_reports_too(stock: Site, here: Path, path: Path) -> None:
    make(here / "a", 10)
    for words, code in (
        ([here / "missing", stock.url], 3),
        ([here / "a", "ftp://127.0.0.1:1/x"], 6),
        ([here / "a", "gopher://host/x"], 2),
        ([here / "a", here / "a"], 2),
    ):
        refused(mpx("copy", "--report", path, *words), code)
        report = read(path)
        assert (report["status"], report["exit_code"]) == ("failed", code)
        assert report["error"]
        assert report["files"]["moved"] == 0
        assert report["checksum"]["result"] == "nothing moved"


def test_a_report_replaces_an_older_one_whole(here: Path, path: Path) -> None:
    make(here / "a", 10)
    path.write_text("an older report " * 1000)
    copied(mpx("copy", "--report", path, here / "a", here / "b"))
    assert read(path)["status"] == "done"
    assert sorted(entry.name for entry in here.iterdir()) == ["a", "b"]


def test_a_report_to_standard_output(here: Path) -> None:
    make(here / "a", 10)
    ended = mpx("copy", "-q", "--report", "/dev/stdout", here / "a", here / "b")
    copied(ended)
    jsonschema.validate(json.loads(ended.out), SCHEMA)


@pytest.mark.parametrize(("source", "code", "status"), [("a", 0, "done"), ("missing", 3, "failed")])
def test_a_dash_is_standard_output_and_all_else_is_on_standard_error(
    here: Path, source: str, code: int, status: str
) -> None:
    make(here / "a", 10)
    ended = mpx("copy", "-v", "--report", "-", source, "b", folder=here)
    told = json.loads(ended.out)
    assert (ended.code, told["exit_code"], told["status"]) == (code, code, status)
    assert ("copied 1 of 1 files" if code == 0 else "missing does not exist") in ended.err
    assert not (here / "-").exists()


def test_strange_names_in_a_report(here: Path, path: Path) -> None:
    for name in ("caf\udce9", "line\nend", "\x1b[31m"):
        make(here / "up" / name, 1)
    copied(mpx("copy", "-r", here / "up", here / "dst"))
    ended = mpx("copy", "-r", "-v", "--report", path, here / "up", here / "dst")
    copied(ended)
    assert {Path(entry["name"]).name for entry in read(path)["skipped"]} == {
        "caf\udce9",
        "line\nend",
        "\x1b[31m",
    }
    assert "\x1b" not in ended.out
    assert r"line\x0aend" in ended.out
