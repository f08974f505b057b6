"""The story as lines for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence

from mpx.explain.finding import Chapter, FindingKind

WIDTH = 110
SIGNS = {FindingKind.FACT: "-", FindingKind.LIMIT: "*", FindingKind.PROBLEM: "!", FindingKind.ADVICE: ">"}


def lines(chapters: Sequence[Chapter]) -> Iterator[str]:
    """Yield the lines; `*`: what held it back, `!`: what went wrong, `>`: what would have been faster."""
    for place, chapter in enumerate(chapters):
        if place:
            yield ""
        yield f"{chapter.title[:1].upper()}{chapter.title[1:]}"
        for finding in chapter.findings:
            yield from textwrap.wrap(
                finding.text,
                WIDTH,
                initial_indent=f"  {SIGNS[finding.kind]} ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
