"""What `mpx probe` tells of a run: lines, JSON against its schema and its page, a picture; its targets."""

import json
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mpx
from mpx.choices import TRAINABLE
from mpx.probing.background import Bottleneck, CongestionChoice, ModelUsed, PathBackground
from mpx.probing.plot import draw
from mpx.probing.result import ProbeResult, WayTaken
from mpx.probing.target import parse_target
from mpx.recognition.mix import UNKNOWN, Mix
from mpx.rtt.method import Noise
from mpx.rtt.series import Probe

SCHEMA = json.loads(files("mpx").joinpath("probe.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

ECHO = WayTaken(
    kind="echo",
    name="echo of mpx serve (UDP port 2811)",
    reason="the server announces it",
    noise=Noise(0.0000225, "measured over loopback"),
)
SESSION = WayTaken(
    kind="session",
    name="idle GridFTP session (NOOP at TCP port 2811)",
    reason="the server announces no echo",
    noise=Noise(0.001, "NOOPs", is_estimate=True),
    sees_loss=False,
    retransmissions=3,
)
SHARES = (0.02, 0.81, 0.04, 0.09, 0.03, 0.01)  # of none, C, B, CC, BC, BB
CUBIC = CongestionChoice("fair", "cubic", "the background is probably cubic only")
SHARED = PathBackground(Mix("C", 0.81, SHARES), "", CUBIC)
RESULT = ProbeResult(
    target="ftp://dtn.example.org/",
    address=("192.0.2.7", 2811),
    way=ECHO,
    sampling="single",
    profile="",
    window_s=10.0,
    start_unix_s=1_790_000_000.0,
    duration_s=9.96,
    probes=(Probe(0.0, 0.0601), Probe(0.1, None), Probe(0.2, 0.0605), Probe(0.3, 0.0800)),
    background=SHARED,
)
ACTIVE = replace(
    RESULT,
    profile="short",
    goodput=((0.1, 0.0), (0.2, 48e6)),
    bottleneck=Bottleneck(48e6, 0.021, dropped=True),
)


def test_the_lines_fit_a_ticket() -> None:
    assert RESULT.as_lines() == [
        "target    ftp://dtn.example.org/ at 192.0.2.7:2811",
        "way       echo of mpx serve (UDP port 2811): the server announces it",
        "noise     22.5 us (measured over loopback)",
        "time      2026-09-21 14:13:20Z, 9.96 s, 10 probes a second",
        "probes    4 sent, 1 lost",
        "loss      25.00%",
        "RTT       min 60.100 ms, median 60.500 ms, P99 80.000 ms",
        "jitter    19.500 ms",
        "mix       one CUBIC stream (C), 81% (none 2%, cubic only 90%, any bbr 8%)",
        "decision  cubic (fair): the background is probably cubic only",
    ]


def test_what_bursts_tell_is_told() -> None:
    lines = ACTIVE.as_lines()
    assert any(line.endswith(", beside bursts (CUBIC 2 s, BBR 2 s, nothing 1 s)") for line in lines)
    assert "link      at least 48 Mbit/s; its queue holds 21 ms" in lines
    told = ACTIVE.as_dict()
    VALIDATOR.validate(told)
    assert (told["mode"], told["profile"]) == ("active", "short")
    assert told["bottleneck"] == {"rate_bps": 48_000_000, "queue_s": 0.021, "queue_dropped": True}
    assert told["goodput"] == [{"t_s": 0.1, "bps": 0}, {"t_s": 0.2, "bps": 48_000_000}]
    halfway = replace(ACTIVE, bottleneck=replace(ACTIVE.bottleneck, dropped=False))
    assert "link      at least 48 Mbit/s; its queue holds at least 21 ms" in halfway.as_lines()
    nothing = replace(ACTIVE, goodput=(), bottleneck=None)
    assert "link      no data of the bursts arrived" in nothing.as_lines()
    VALIDATOR.validate(nothing.as_dict())


def test_a_background_that_is_not_known_is_no_mix() -> None:
    decision = CongestionChoice("fast", None, "the background is not known; bbr is not permitted")
    told = replace(RESULT, background=PathBackground(None, "5 s of probes are needed at least", decision))
    assert "mix       not known: 5 s of probes are needed at least" in told.as_lines()
    assert f"decision  the default of the kernel (fast): {decision.reason}" in told.as_lines()
    VALIDATOR.validate(told.as_dict())
    assert (told.as_dict()["mix"], told.as_dict()["decision"]["congestion"]) == (None, None)
    strange = replace(RESULT, background=replace(SHARED, mix=Mix(UNKNOWN, 0.99, SHARES)))
    assert any(line.startswith("mix       unknown: unlike all") for line in strange.as_lines())
    VALIDATOR.validate(strange.as_dict())


@pytest.mark.parametrize("name", TRAINABLE)
@pytest.mark.parametrize("folder", ["", "models/mine"])
def test_every_classifier_may_have_named_the_mix(name: str, folder: str) -> None:
    told = replace(RESULT, background=replace(SHARED, model=ModelUsed(name, folder))).as_dict()
    VALIDATOR.validate(told)
    assert told["classifier"] == {"name": name, "model": folder or None}


def test_what_a_session_cannot_tell_is_not_made_up() -> None:
    told = replace(RESULT, way=SESSION)
    lines = told.as_lines()
    assert "noise     about 1 ms (NOOPs)" in lines
    assert "probes    4 sent, 1 without an answer within 3 s" in lines
    assert "loss      not seen over TCP (retransmissions from here: 3)" in lines
    assert told.as_dict()["loss"] is None
    assert told.as_dict()["way"]["retransmissions"] == 3
    told = replace(RESULT, way=replace(SESSION, retransmissions=None))
    assert "loss      not seen over TCP" in told.as_lines()


def test_a_noise_that_is_not_known_is_no_nothing() -> None:
    told = replace(RESULT, way=replace(ECHO, noise=Noise(None, "it could not be measured: timed out")))
    assert "noise     not known (it could not be measured: timed out)" in told.as_lines()
    assert told.as_dict()["way"]["noise_s"] is None


def test_why_probes_were_lost_or_not_sent_is_told() -> None:
    told = replace(RESULT, way=replace(ECHO, trouble="Connection refused"), not_sent=7)
    assert (
        "probes    4 sent, 1 lost (Connection refused); 7 not sent, as this host was busy" in told.as_lines()
    )
    assert (told.as_dict()["way"]["trouble"], told.as_dict()["not_sent"]) == ("Connection refused", 7)
    assert RESULT.as_dict()["way"]["trouble"] is None


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "done"), (6, "failed"), (7, "failed"), *((code, "interrupted") for code in (129, 130, 143))],
)
def test_how_it_ended(code: int, status: str) -> None:
    told = replace(RESULT, exit_code=code).as_dict()
    VALIDATOR.validate(told)
    assert (told["status"], told["exit_code"]) == (status, code)


def test_where_nothing_came_back_there_are_no_figures() -> None:
    told = replace(RESULT, probes=(Probe(0.0, None),))
    assert "RTT       min -, median -, P99 -" in told.as_lines()
    assert told.as_dict()["rtt"] == {"min_s": None, "median_s": None, "p99_s": None}


def test_the_samples_of_the_paper_are_means_of_trains_and_so_is_their_jitter() -> None:
    """Within a train there is hardly any, however much the link swings."""

    def train(at_s: float, rtt_s: float) -> list[Probe]:
        return [Probe(at_s + k / 1000, rtt_s + (k - 4.5) / 1000) for k in range(10)]

    probes = [*train(0.0, 0.06), *train(1.0, 0.10), Probe(2.0, None), *train(3.0, 0.20), *train(4.0, 0.18)]
    result = replace(RESULT, sampling="paper", probes=tuple(probes))
    told = result.as_dict()
    assert told["series"] == [
        {"t_s": 0.0, "rtt_s": 0.06}, {"t_s": 1.0, "rtt_s": 0.1}, {"t_s": 2.0, "rtt_s": None},
        {"t_s": 3.0, "rtt_s": 0.2}, {"t_s": 4.0, "rtt_s": 0.18},
    ]  # fmt: skip
    assert told["jitter_s"] == pytest.approx((0.04 + 0.02) / 2)
    assert "jitter    30.000 ms (between the means of each ten)" in result.as_lines()
    assert (told["sent"], told["lost"]) == (41, 1)
    assert told["rtt"]["min_s"] == pytest.approx(0.0555)  # of single probes, as P99


@settings(max_examples=30)
@given(
    st.lists(st.builds(Probe, st.floats(0, 100), st.none() | st.floats(0, 10)), max_size=10),
    st.sampled_from(["single", "paper"]),
    st.none() | st.text(),
    st.builds(
        WayTaken,
        st.sampled_from(["echo", "session", "handshake", "icmp"]),
        st.text(),
        st.text(),
        st.builds(Noise, st.none() | st.floats(0, 1), st.text(), st.booleans()),
        st.text(),
        st.booleans(),
        st.none() | st.integers(0, 10**6),
    ),
)
def test_every_result_fits_the_schema(
    probes: list[Probe], sampling: str, error: str | None, way: WayTaken
) -> None:
    result = replace(RESULT, probes=tuple(probes), sampling=sampling, error=error, way=way)
    VALIDATOR.validate(json.loads(json.dumps(result.as_dict())))
    assert len(result.as_lines()) == 10


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
    draw(replace(RESULT, target="$odd^{name\udcff\n"), str(file))
    assert file.stat().st_size > 1000
    draw(replace(RESULT, probes=()), str(file))
    draw(replace(RESULT, probes=(Probe(0.0, None),)), str(file))
    assert os.listdir(tmp_path) == [file.name]


def test_a_picture_that_cannot_be(tmp_path: Path) -> None:
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
        ("::ffff:192.0.2.7", "192.0.2.7", 2811),
        ("[::ffff:192.0.2.7]:21", "192.0.2.7", 21),
        ("GSIFTP://dtn.example.org/data", "dtn.example.org", 2811),
        ("https://archive.example.org", "archive.example.org", 443),
        ("davs://se.example.org:1094/vo", "se.example.org", 1094),
    ],
)
def test_targets(text: str, host: str, port: int) -> None:
    assert parse_target(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "a b", "/data", "host:/data", "host:0", "host:65536", "host:x", "host:\u0663", "a:b:c",
        "[host]:1", "[::1", "::1]:5", "file:///data", "gopher://example.org/", "ftp://", "ftp:///x",
        "ftp://me:secret@host/", "fe80::1", "fe80::1%lo", "[fe80::1%lo]:2811", "2001:db8::7%lo",
        "ftp://[fe80::1]/", "ftp://[fe80::1%25lo]:5/",
    ],
)  # fmt: skip
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(mpx.UsageError):
        parse_target(text)


def test_what_to_probe_instead() -> None:
    with pytest.raises(mpx.UsageError) as raised:
        parse_target("/data")
    assert [each for each in ("https://HOST", "davs://", "mpx://") if each not in str(raised.value)] == []


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"window_s": 0.0}, "--window"), ({"window_s": -1.0}, "--window"), ({"window_s": 1e9}, "--window"),
        ({"window_s": float("nan")}, "--window"), ({"sampling": "often"}, "single, paper"),
        ({"ipv4": True, "ipv6": True}, "-4"), ({"ipv6": True}, "not possible here"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(mpx.UsageError, match=named):
        mpx.probe("127.0.0.1:9", **wrong)
