"""`mpx lab traffic`: a background generator between two hosts of a lab, from the shell."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpx.errors import MpxError, UsageError
from mpx.signals import Signals
from mpx.units import format_rate, parse_duration
from mpx_lab.lab import Lab
from mpx_lab.lab_option import lab_option
from mpx_lab.state import LabError, load

if TYPE_CHECKING:
    from mpx_lab.record import Run
    from mpx_lab.traffic.spec import Spec

FLOW = "traffic"
LOOK_S = 0.2  # between two checks whether it still runs


@click.command("traffic")
@lab_option
@click.argument("source", metavar="SRC")
@click.argument("sink", metavar="DST")
@click.argument("generator")
@click.option(
    "--for", "seconds", metavar="TIME", help="End after this time, for example 60s (default: at Ctrl-C)."
)
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Keep the record in this folder, new or empty."
)
def traffic_command(
    lab_id: str, source: str, sink: str, generator: str, seconds: str | None, folder: Path | None
) -> None:
    """Send traffic from SRC to DST.

    GENERATOR describes it, for example 'tcp(congestion=cubic)' or 'udp(rate=50Mbit/s)'.
    """
    from mpx_lab.record import Run  # imported here, as other commands of the lab do not need it
    from mpx_lab.traffic.spec import parse, show

    spec = parse(generator)
    limit_s = float("inf") if seconds is None else parse_duration(seconds)
    if limit_s <= 0:
        raise UsageError("--for must be above zero; write for example 60s")
    lab = Lab.attach(lab_id)
    lab.host(source).address_of(sink)  # else there is nothing to report
    parameters = {
        "generator": show(spec),
        "source": source,
        "sink": sink,
        "seconds": None if seconds is None else limit_s,
        "topology": lab.topology.name,
        "links": [link.status().as_json() for link in lab.links],
    }
    with tempfile.TemporaryDirectory(prefix="mpx-lab-traffic-") as spare:
        record = folder or Path(spare, "run")
        run = Run(record, "mpx lab traffic", parameters, routes=lab.routes(), scale=lab.topology.scale)
        try:
            rate_bps, took_s = _sent(spec, source, sink, limit_s, lab, run)
        except (MpxError, OSError):
            there = load(lab_id)
            if there is None or there.topology != lab.topology:
                raise LabError(f"the lab '{lab_id}' was taken down meanwhile") from None
            raise
    click.echo(f"{show(spec)} from {source} to {sink}: {format_rate(rate_bps)} in {took_s:.1f} s")
    assert run.validity is not None
    for reason in run.validity.reasons:
        click.echo(f"does not count: {reason}")


def _sent(spec: "Spec", source: str, sink: str, limit_s: float, lab: Lab, run: "Run") -> tuple[float, float]:
    """Run the generator for a time, or until a signal; return the rate that arrived (bit/s) and the time."""
    from mpx_lab.judged import judged
    from mpx_lab.record_reader import RecordedRun
    from mpx_lab.series import goodput_bps
    from mpx_lab.traffic.background import Background, RttProbe

    hosts = lab.host(source), lab.host(sink)
    address = hosts[0].address_of(sink)
    with (
        Signals(grace_s=None) as signals,
        run,
        judged(lab, run),
        RttProbe(FLOW, *hosts, address, run.rtt, run.epoch_s),
        Background(spec, FLOW, *hosts, address, run.flows, run.epoch_s) as background,
    ):
        began_s = run.now_s
        while background.running and (left_s := began_s + limit_s - run.now_s) > 0:
            if signals.cancel.wait(min(LOOK_S, left_s)):
                break
        ended_s = run.now_s
    return goodput_bps(RecordedRun.open(run.folder).goodput(FLOW), began_s, ended_s), ended_s - began_s
