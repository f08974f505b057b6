"""Reads the folder of a run for analysis (docs/lab-format.md)."""

import bisect
import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mpx.errors import UsageError
from mpx_lab.cpu import CpuUse
from mpx_lab.record import FORMAT
from mpx_lab.series import Sample


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of the round-trip time; None where no answer came."""

    t_s: float  # when it was sent
    rtt_s: float | None
    noise_s: float | None  # of rtt_s, in which the packet was there and the program did not run


@dataclass(frozen=True, slots=True)
class Datagrams:
    """How many datagrams a UDP generator sent, and did not."""

    sent: int
    given_up: int  # not sent: the machine delayed the sender for longer than it makes up for
    refused: int  # the kernel reported that nobody listens

    @property
    def given_up_share(self) -> float:
        """The share of all that were to be sent."""
        due = self.sent + self.given_up + self.refused
        return self.given_up / due if due else 0.0


@dataclass(frozen=True)
class RecordedRun:
    """A run as it was written; everything but `about` is read when it is asked for."""

    folder: Path
    about: dict[str, Any]  # run.json

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read run.json; raises UsageError where there is none, or of another format."""
        try:
            about = json.loads((folder / "run.json").read_text())
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{folder} is not the folder of a run: {error}") from None
        found = about.get("format") if isinstance(about, dict) else None
        if found != FORMAT:
            raise UsageError(f"{folder} has the format {found!r}, this reads {FORMAT!r}")
        validity = about.get("validity", "")
        is_judged = isinstance(validity, dict) and "valid" in validity
        if "status" not in about or not (validity is None or is_judged):
            raise UsageError(f"{folder} is not the folder of a run: run.json does not say whether it counts")
        return cls(folder, about)

    @property
    def valid(self) -> bool:
        """Whether it counts: it came to its end and was judged to be valid."""
        validity = self.about["validity"]
        return self.about["status"] == "done" and bool(validity and validity["valid"])

    def flows(self) -> list[str]:
        """Return the names of the flows."""
        return sorted(file.stem for file in (self.folder / "flows").glob("*.csv") if "." not in file.stem)

    def goodput(self, flow: str) -> list[Sample]:
        """Return the bytes of a flow that arrived, all its streams together."""
        rows = self.rows(f"flows/{flow}.csv")
        return [Sample(float(row["t_s"]), int(row["bytes"])) for row in rows]

    def streams(self, flow: str) -> dict[int, list[Sample]]:
        """Return the same for each stream; each begins with the sample before its first bytes.

        A stream has no lines while nothing arrives. After such a pause it begins again in the same way, so
        that what came then is not spread over the pause.
        """
        times = [sample.t_s for sample in self.goodput(flow)]
        found: dict[int, list[Sample]] = {}
        for row in self.rows(f"flows/{flow}.streams.csv"):
            t_s, series = float(row["t_s"]), found.setdefault(int(row["stream"]), [])
            number = bisect.bisect_left(times, t_s)
            before_s = times[number - 1] if number else 0.0
            if not series or series[-1].t_s < before_s:
                series.append(Sample(before_s, 0))
            series.append(Sample(t_s, int(row["bytes"])))
        return found

    def datagrams(self, flow: str) -> Datagrams:
        """Return what a UDP generator sent and did not; raises UsageError unless it is one and has ended."""
        file = self.folder / "flows" / f"{flow}.json"
        try:
            summary = json.loads(file.read_text())
            counts = (summary[f"datagrams_{what}"] for what in ("sent", "given_up", "refused"))
            return Datagrams(*counts)
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(
                f"{file} has no counts of datagrams ({error!r}); they are written when a UDP generator stops"
            ) from None

    def given_up(self) -> dict[str, float]:
        """Return the share of its datagrams that each UDP generator did not send in time.

        Raises UsageError while any generator runs, as they write it at their end.
        """
        flows = self.folder / "flows"
        shares = {}
        for file in sorted(flows.glob("*.phases.csv")):
            name = file.name.removesuffix(".phases.csv")
            if not (flows / f"{name}.json").exists():
                raise UsageError(
                    f"the generator '{name}' has not been stopped, so what it did not send is not known yet; "
                    "stop it before the run is judged"
                )
            if "datagrams_given_up" in json.loads((flows / f"{name}.json").read_text()):
                shares[name] = self.datagrams(name).given_up_share
        return shares

    def probes(self, name: str) -> list[Probe]:
        """Return the probes of one prober in the order in which they were sent."""
        rows = self.rows(f"rtt/{name}.csv")
        probes = [Probe(float(row["t_s"]), _number(row["rtt_s"]), _number(row["noise_s"])) for row in rows]
        return sorted(probes, key=lambda probe: probe.t_s)

    def cpu(self) -> list[CpuUse]:
        """Return the use of each core over time."""
        shares = ("user", "system", "interrupts", "steal", "idle")
        return [
            CpuUse(float(row["t_s"]), row["core"], *(float(row[share]) for share in shares))
            for row in self.rows("cpu.csv")
        ]

    def rows(self, file: str) -> list[dict[str, str]]:
        """Return the lines of any CSV file of the run, by column; an incomplete last line is left out."""
        with (self.folder / file).open(newline="") as lines:
            return list(csv.DictReader(line for line in lines if line.endswith("\n")))


def _number(text: str) -> float | None:
    return float(text) if text else None
