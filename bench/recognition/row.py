"""What every row on recognising the background is: a computation, a table, a figure, verdicts."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from figures import Verdict, command, conclude, machine
from mpx_lab.dataset.load import Example, load_dataset

from mpx.errors import MpxError

Results = TypeVar("Results")
SEED = 1


class Row(ABC, Generic[Results]):
    """One experiment. `doc` is what --help says; `name` is that of its figure."""

    name: str
    doc: str
    panels = (1, 1)  # rows and columns of axes
    size = (8.0, 4.5)  # inches

    @abstractmethod
    def compute(self, examples: Sequence[Example], effort: str) -> Results:
        """Return what comes out, quick or full; raises UsageError where the dataset has not got it."""

    @abstractmethod
    def table(self, results: Results) -> Sequence[str]:
        """Return the lines of the table."""

    @abstractmethod
    def measured(self, results: Results) -> Any:
        """Return what is judged, in plain values."""

    @abstractmethod
    def draw(self, results: Results, axes: Any) -> None:
        """Draw the figure on the axes of matplotlib: one, or an array of them."""


def main(row: Row[Any], judge: Callable[[Any], Iterable[Verdict]]) -> None:
    """Read the command line and the dataset, compute, and say what came out."""
    parser = command(row.doc)
    parser.add_argument("dataset", type=Path, help="a folder of mpx lab dataset")
    parser.add_argument("--effort", choices=("quick", "full"), default="quick")
    parser.add_argument("--out", type=Path, default=Path("reports/ops"), help="where the figure goes")
    options = parser.parse_args()
    print(machine())
    began = time.monotonic()
    try:
        examples = load_dataset(options.dataset)
        results = row.compute(examples, options.effort)
    except MpxError as error:
        sys.exit(str(error))
    print(f"{len(examples)} runs; computed in {time.monotonic() - began:.0f} s")
    print("\n".join(row.table(results)))
    print(f"figure: {_figure(row, results, options.out)}")
    sys.exit(conclude(judge, row.measured(results), options.results))


def _figure(row: Row[Any], results: Any, folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(*row.panels, figsize=row.size)
    row.draw(results, axes)
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{row.name}.png"
    figure.savefig(file, dpi=150)
    plt.close(figure)
    return file
