"""The story as lines for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence

from mpx.explain.finding import Kind, Section

WIDTH = 110
SIGNS = {Kind.FACT: "-", Kind.LIMIT: "*", Kind.PROBLEM: "!", Kind.ADVICE: ">"}


def lines(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the lines; `*`: what held it back, `!`: what went wrong, `>`: what would have been faster."""
    for place, section in enumerate(sections):
        if place:
            yield ""
        yield f"{section.title[:1].upper()}{section.title[1:]}"
        for finding in section.findings:
            yield from textwrap.wrap(
                finding.text,
                WIDTH,
                initial_indent=f"  {SIGNS[finding.kind]} ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
