"""What `mpx probe` tells of a run: lines, JSON against its schema and its page, a picture; its targets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mpx
from mpx.probing.plot import check_format, draw
from mpx.probing.result import Decision, ProbeResult, verdict
from mpx.probing.target import parse_target
from mpx.probing.way import Noise
from mpx.rtt_series import Probe

SCHEMA = json.loads(files("mpx").joinpath("probe.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

RESULT = ProbeResult(
    target="ftp://dtn.example.org/",
    address=("192.0.2.7", 2811),
    way="echo of mpx serve (UDP port 2811)",
    reason="the server announces it",
    noise=Noise(0.0000225, "questions and answers over loopback"),
    sampling="single",
    window_s=10.0,
    start_unix_s=1_790_000_000.0,
    duration_s=9.96,
    probes=(Probe(0.0, 0.0601), Probe(0.1, None), Probe(0.2, 0.0605), Probe(0.3, 0.0800)),
)


@dataclass(frozen=True)
class Background:
    """A mix as the classifier tells it."""

    name: str = "BC"
    probability: float = 0.93
    groups: Mapping[str, float] = field(
        default_factory=lambda: {"none": 0.0, "cubic only": 0.05, "any bbr": 0.95}
    )


def test_the_lines_fit_a_ticket() -> None:
    assert RESULT.as_lines() == [
        "target    ftp://dtn.example.org/ at 192.0.2.7:2811",
        "way       echo of mpx serve (UDP port 2811): the server announces it",
        "noise     22.5 us (questions and answers over loopback)",
        "time      2026-09-21 14:13:20Z, 9.96 s, 10 probes a second",
        "probes    4 sent, 1 lost",
        "loss      25.00%",
        "RTT       min 60.100 ms, median 60.500 ms, P99 80.000 ms",
        "jitter    19.500 ms",
        "mix       no model",
        "decision  no model",
    ]


def test_a_noise_that_is_only_a_bound_says_so() -> None:
    lines = replace(RESULT, noise=Noise(0.001, "NOOPs", is_least=True)).as_lines()
    assert "noise     at least 1 ms (NOOPs)" in lines


def test_where_nothing_came_back_there_are_no_figures() -> None:
    told = replace(RESULT, probes=(Probe(0.0, None),))
    assert "RTT       min -, median -, P99 -" in told.as_lines()
    assert told.as_dict()["rtt"] == {"min_s": None, "median_s": None, "p99_s": None}


def test_what_is_said_of_the_background() -> None:
    assert verdict(None, None) == [("mix", "no model"), ("decision", "no model")]
    decision = Decision("bbr", "there is BBR in the mix")
    assert verdict(Background(), decision) == [
        ("mix", "BC (93%; none 0%, cubic only 5%, any bbr 95%)"),
        ("decision", "bbr: there is BBR in the mix"),
    ]
    told = replace(RESULT, mix=Background(), decision=decision).as_dict()
    VALIDATOR.validate(told)
    assert told["mix"] == {
        "class": "BC", "probability": 0.93, "groups": {"none": 0.0, "cubic only": 0.05, "any bbr": 0.95},
    }  # fmt: skip
    assert told["decision"] == {"congestion": "bbr", "reason": "there is BBR in the mix"}


def test_the_samples_of_the_paper_are_means_of_trains() -> None:
    train = tuple(Probe(k / 1000, 0.06 + k / 1000) for k in range(10))
    told = replace(RESULT, sampling="paper", probes=(*train, Probe(1.0, None))).as_dict()
    assert told["series"] == [{"t_s": 0.0, "rtt_s": 0.0645}, {"t_s": 1.0, "rtt_s": None}]
    assert (told["sent"], told["lost"]) == (11, 1)


@settings(max_examples=30)
@given(
    st.lists(st.builds(Probe, st.floats(0, 100), st.none() | st.floats(0, 10)), max_size=10),
    st.sampled_from(["single", "paper"]),
    st.none() | st.text(),
)
def test_every_result_fits_the_schema(probes: list[Probe], sampling: str, error: str | None) -> None:
    told = replace(RESULT, probes=tuple(probes), sampling=sampling, error=error).as_dict()
    VALIDATOR.validate(json.loads(json.dumps(told)))


def test_the_schema_is_one_and_the_page_names_every_key() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    page = (Path(__file__).parents[2] / "docs/probe-format.md").read_text()

    def keys(schema: dict[str, Any]) -> list[str]:
        found = []
        for name, about in schema.get("properties", {}).items():
            found += [name, *keys(about), *keys(about.get("items", {}))]
        return found

    assert [key for key in keys(SCHEMA) if f"`{key}`" not in page] == []


@pytest.mark.parametrize("suffix", ["png", "svg", "PDF"])
def test_a_picture(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"rtt.{suffix}"
    check_format(str(file))
    draw(replace(RESULT, target="$odd^{name"), str(file))
    assert file.stat().st_size > 1000
    draw(replace(RESULT, probes=()), str(file))
    draw(replace(RESULT, probes=(Probe(0.0, None),)), str(file))


def test_a_picture_that_cannot_be(tmp_path: Path) -> None:
    for name in ("x", "x.txt", "x."):
        with pytest.raises(mpx.UsageError, match=r"\.png"):
            check_format(name)
    with pytest.raises(mpx.UsageError, match="cannot write"):
        draw(RESULT, str(tmp_path / "missing/x.png"))


# --- targets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("dtn.example.org", "dtn.example.org", 2811),
        ("dtn.example.org:22", "dtn.example.org", 22),
        ("192.0.2.7", "192.0.2.7", 2811),
        ("::1", "::1", 2811),
        ("2001:db8::7", "2001:db8::7", 2811),
        ("[2001:db8::7]", "2001:db8::7", 2811),
        ("[2001:db8::7]:21", "2001:db8::7", 21),
        ("ftp://dtn.example.org", "dtn.example.org", 2811),
        ("ftp://me@dtn.example.org:2812/~/x y", "dtn.example.org", 2812),
        ("ftp://[::1]:5/", "::1", 5),
        ("GSIFTP://dtn.example.org/data", "dtn.example.org", 2811),
    ],
)
def test_targets(text: str, host: str, port: int) -> None:
    assert parse_target(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "a b", "/data", "host:/data", "host:0", "host:65536", "host:x", "host:\u0663", "a:b:c",
        "[host]:1", "[::1", "::1]:5", "file:///data", "https://example.org/", "ftp://", "ftp:///x",
        "ftp://me:secret@host/",
    ],
)  # fmt: skip
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(mpx.UsageError):
        parse_target(text)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"window_s": 0.0}, "--window"), ({"window_s": -1.0}, "--window"), ({"window_s": 1e9}, "--window"),
        ({"window_s": float("nan")}, "--window"), ({"sampling": "often"}, "single, paper"),
        ({"ipv4": True, "ipv6": True}, "-4"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(mpx.UsageError, match=named):
        mpx.probe("127.0.0.1:9", **wrong)
