"""Reports of copies as `mpx explain` reads them: told, drawn, and made a page."""

from pathlib import Path
from xml.etree import ElementTree

from mpx.errors import UsageError
from mpx.explain.drawing import svg
from mpx.explain.page import page
from mpx.explain.picture import picture
from mpx.explain.record import read_report
from mpx.explain.story import tell
from mpx.explain.told import lines

REPORTS = Path(__file__).parents[2] / "reports"
SEEDS = [(REPORTS / f"{name}.json").read_bytes() for name in ("window", "four_paths")]
ALLOWED = (UsageError,)
WEIGHT = 10


def parse(data: bytes) -> None:
    """Tell it, and have its picture be well formed."""
    record = read_report(data, "report.json")
    story = tell(record)
    assert all(line.isprintable() for line in lines(story))
    assert page(record, story).encode()
    drawn = picture(record)
    if drawn is not None:
        ElementTree.fromstring(svg(drawn))
