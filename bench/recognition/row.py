"""What every row on recognising the background is: a computation on a dataset, a table, a figure."""

import argparse
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import harness
from figures import machine
from harness import Results
from mpx_lab.dataset.load import Example, load_dataset

SEED = 1


class SeriesRow(harness.Row[Results]):
    """One experiment on the series of a dataset."""

    folder = "reports/ops"

    @abstractmethod
    def compute(self, examples: Sequence[Example], effort: str) -> Results:
        """Return what comes out, quick or full; raises UsageError where the dataset lacks runs for it."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the dataset."""
        super().arguments(parser)
        parser.add_argument("dataset", type=Path, help="a folder of mpx lab dataset")

    def results(self, options: argparse.Namespace) -> Results:
        """Read the dataset, compute, and print the table."""
        print(machine())
        began_s = time.monotonic()
        examples = load_dataset(options.dataset)
        results = self.compute(examples, options.effort)
        print(f"{len(examples)} runs; computed in {time.monotonic() - began_s:.0f} s")
        print("\n".join(self.table(results)))
        return results
