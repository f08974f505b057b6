"""`mpx lab traffic`: a background generator between two hosts of a lab, from the shell."""

import tempfile
from pathlib import Path

import click

from mpx.cli import Signals
from mpx.units import format_rate, parse_duration
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.lab_option import lab_option
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import bytes_between
from mpx_lab.traffic.background import Background, RttProbe
from mpx_lab.traffic.spec import parse, show

FLOW = "traffic"
LOOK_S = 0.2  # between two looks whether it still runs


@click.command("traffic")
@lab_option
@click.argument("source", metavar="SRC")
@click.argument("sink", metavar="DST")
@click.argument("generator")
@click.option("--for", "seconds", metavar="TIME", help="End after so long, as 60s; else with Ctrl-C.")
@click.option("--folder", type=click.Path(path_type=Path), help="Keep the record there; new or empty.")
def traffic_command(
    lab_id: str, source: str, sink: str, generator: str, seconds: str | None, folder: Path | None
) -> None:
    """Send from SRC to DST what GENERATOR says, such as 'tcp(congestion=cubic)' or 'udp(rate=50Mbit/s)'."""
    spec = parse(generator)
    limit_s = float("inf") if seconds is None else parse_duration(seconds)
    lab = Lab.attach(lab_id)
    from_host, to_host = lab.host(source), lab.host(sink)
    address = to_host.addresses[0]
    told = {"generator": show(spec), "source": source, "sink": sink}
    with tempfile.TemporaryDirectory() as spare, Signals() as signals:
        record = folder or Path(spare, "run")
        run = Run(record, "mpx lab traffic", told, routes=lab.routes(), scale=lab.topology.scale)
        with (
            run,
            judged(lab, run),
            RttProbe(FLOW, from_host, to_host, address, run.rtt, run.epoch_s),
            Background(spec, FLOW, from_host, to_host, address, run.flows, run.epoch_s) as background,
        ):
            began_s = run.now_s
            while background.running and run.now_s < began_s + limit_s:
                if signals.cancel.wait(min(LOOK_S, began_s + limit_s - run.now_s)):
                    break
            ended_s = run.now_s
        series = RecordedRun.open(record).goodput(FLOW)
    rate_bps = bytes_between(series, began_s, ended_s) * 8 / max(ended_s - began_s, LOOK_S)
    click.echo(f"{show(spec)} from {source} to {sink}: {format_rate(rate_bps)} in {ended_s - began_s:.1f} s")
    assert run.validity is not None
    for reason in run.validity.reasons:
        click.echo(f"does not count: {reason}")
