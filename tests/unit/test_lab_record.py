"""The folder of a run: written, read back, and as its schema says."""

import importlib.resources
import json
from pathlib import Path

import jsonschema
import pytest
from mpx_lab.record import Run
from mpx_lab.record_reader import Datagrams, Probe, RecordedRun
from mpx_lab.route_list import Route
from mpx_lab.series import Sample
from mpx_lab.traffic.log import Log, next_tick
from mpx_lab.validity import Validity

from mpx.errors import UsageError

SCHEMA = json.loads(importlib.resources.files("mpx_lab").joinpath("run.schema.json").read_text())


def checked(folder: Path) -> RecordedRun:
    run = RecordedRun.open(folder)
    jsonschema.validate(run.about, SCHEMA)
    return run


def test_a_run_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    routes = [Route("src", None, "bbr"), Route("src", "dst", "cubic", 65535)]
    with Run(folder, "APT-F5", {"streams": 4}, routes=routes, seeds={"loss": 7}, scale=0.5) as run:
        begun = checked(folder)
        assert begun.about["status"] == "running"
        assert not begun.valid
        with Log(run.flows / "up.csv", ["t_s", "bytes"], run.epoch_s) as log:
            log.line(run.epoch_s + 0.1, 0)
            log.line(run.epoch_s + 0.2, 500)
        run.validity = Validity(True, (), {"cpu_busy": 0.2})
    done = checked(folder)
    assert done.valid
    assert done.about["routes"][1] == {
        "host": "src",
        "to": "dst",
        "congestion": "cubic",
        "window_bytes": 65535,
    }
    assert (done.about["scale"], done.about["seeds"]) == (0.5, {"loss": 7})
    assert done.flows() == ["up"]
    assert done.goodput("up") == [Sample(0.1, 0), Sample(0.2, 500)]
    cores = [use.core for use in done.cpu()]
    assert cores[0] == "all"
    assert len(cores) >= 1 + done.about["machine"]["cores"]


def test_a_run_that_failed_or_was_not_judged_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Run(tmp_path / "failed", "x", {}) as run:
        run.validity = Validity(True, ())
        _ = 1 // 0
    failed = checked(tmp_path / "failed")
    assert failed.about["status"] == "failed"
    assert not failed.valid
    with Run(tmp_path / "unjudged", "x", {}):
        pass
    assert not checked(tmp_path / "unjudged").valid
    with Run(tmp_path / "late", "x", {}) as run:
        run.validity = Validity(False, ("late",))
    assert not checked(tmp_path / "late").valid
    assert RecordedRun.open(tmp_path / "late").about["validity"]["reasons"] == ["late"]


def test_a_folder_in_use_and_one_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        Run(tmp_path, "x", {})
    with pytest.raises(UsageError, match="not the folder of a run"):
        RecordedRun.open(tmp_path)
    (tmp_path / "run.json").write_text('{"format": "other"}')
    with pytest.raises(UsageError, match="format 'other'"):
        RecordedRun.open(tmp_path)


def test_series_that_a_kill_cut_short_and_streams_that_join_later(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "bg.csv").write_text("t_s,bytes\n0.05,0\n0.1,10\n0.2,30\n0.3,4")
    (flows / "bg.streams.csv").write_text("t_s,stream,bytes\n0.1,0,10\n0.2,0,10\n0.2,1,20\n")
    (flows / "bg.tcp.csv").write_text("t_s,stream\n")
    (tmp_path / "rtt").mkdir()
    (tmp_path / "rtt" / "wan.csv").write_text("t_s,rtt_s,noise_s\n0.2,0.03,0.0001\n0.1,,\n")
    run = RecordedRun(tmp_path, {})
    assert run.flows() == ["bg"]
    assert run.goodput("bg") == [Sample(0.05, 0), Sample(0.1, 10), Sample(0.2, 30)]
    assert run.streams("bg") == {
        0: [Sample(0.05, 0), Sample(0.1, 10), Sample(0.2, 10)],
        1: [Sample(0.1, 0), Sample(0.2, 20)],
    }
    assert run.probes("wan") == [Probe(0.1, None, None), Probe(0.2, 0.03, 0.0001)]


def test_what_a_udp_generator_did_not_send(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, {})
    with pytest.raises(UsageError, match=r"when a UDP generator stops"):
        run.datagrams("udp")
    (tmp_path / "flows").mkdir()
    file = tmp_path / "flows" / "udp.json"
    written = {"spec": "udp(rate=1Mbit/s)", "datagrams_sent": 90, "datagrams_given_up": 6}
    file.write_text(json.dumps({**written, "datagrams_refused": 4}))
    assert run.datagrams("udp") == Datagrams(90, 6, 4)
    assert run.datagrams("udp").given_up_share == 0.06
    file.write_text(json.dumps({"spec": "tcp", "connections": []}))
    with pytest.raises(UsageError, match="has no counts of datagrams"):
        run.datagrams("udp")
    assert Datagrams(0, 0, 0).given_up_share == 0


def test_the_shares_that_all_udp_generators_gave_up(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    run = RecordedRun(tmp_path, {})
    assert run.given_up() == {}
    counts = {"datagrams_sent": 90, "datagrams_given_up": 10, "datagrams_refused": 0}
    for name, written in (("slow", counts), ("tcp", {"connections": []})):
        (flows / f"{name}.phases.csv").write_text("t_s,stream,on\n0.1,0,1\n")
        with pytest.raises(UsageError, match=f"generator '{name}' has not been stopped"):
            run.given_up()
        (flows / f"{name}.json").write_text(json.dumps(written))
    assert run.given_up() == {"slow": 0.1}


def test_ticks_are_whole_multiples_after_the_epoch() -> None:
    assert next_tick(1000.0, 1000.0) == pytest.approx(1000.1)
    assert next_tick(1000.15, 1000.0) == pytest.approx(1000.2)
