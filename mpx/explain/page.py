"""The story as a page for a browser: one file that needs no other, without scripts. Pure."""

from collections.abc import Iterator, Sequence
from html import escape

from mpx._version import __version__
from mpx.explain.drawing import svg
from mpx.explain.finding import Chapter, Finding, FindingKind
from mpx.explain.picture import picture
from mpx.explain.record import CopyRecord
from mpx.explain.stretches import last_attempt
from mpx.explain.style import STYLE
from mpx.location import shown_place
from mpx.report import Event
from mpx.units import format_duration, format_rate

MOST_ROWS = 200  # of decisions
POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is loaded, whatever a report holds
LABELS = {
    FindingKind.FACT: "",
    FindingKind.LIMIT: "limit: ",
    FindingKind.PROBLEM: "problem: ",
    FindingKind.ADVICE: "faster: ",
}


def page(record: CopyRecord, chapters: Sequence[Chapter]) -> str:
    """Return the page."""
    (copy, *others) = chapters
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>mpx copy: {escape(shown_place(record.source))}</title>",
            f"<style>{STYLE}</style></head><body>",
            *_head(copy),
            *_drawn(record),
            *(line for chapter in others for line in _chapter(chapter)),
            *_decisions(last_attempt(record.events), record.omitted),
            f"<footer>made by mpx explain {escape(__version__)}; times count from when streams were opened"
            "</footer></body></html>",
            "",
        ]
    )


def _head(copy: Chapter) -> Iterator[str]:
    first, *others = copy.findings
    yield f"<h1>{escape(_capital(first.text))}</h1>"
    yield "<ul>"
    yield from map(_item, others)
    yield "</ul>"


def _drawn(record: CopyRecord) -> Iterator[str]:
    drawn = picture(record)
    if drawn is None:
        return
    yield "<h2>Over time</h2>"
    yield svg(drawn)
    if drawn.marks:
        yield '<p class="lead">Dashed lines are decisions; their numbers are those of the list below.</p>'


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f"<h2>{escape(_capital(chapter.title))}</h2>"
    yield "<ul>"
    yield from map(_item, chapter.findings)
    yield "</ul>"


def _item(finding: Finding) -> str:
    label = LABELS[finding.kind]
    return f'<li class="{finding.kind}">{f"<b>{label}</b>" if label else ""}{escape(finding.text)}</li>'


def _decisions(events: Sequence[Event], omitted: int) -> Iterator[str]:
    if not events:
        return
    several = len({event.path for event in events}) > 1
    yield "<h2>Decisions</h2>"
    path = "<th>path</th>" if several else ""
    yield f'<table><tr><th class="n">#</th><th class="n">at</th>{path}<th class="n">streams</th>'
    yield '<th class="n">goodput before</th><th>congestion control</th><th>reason</th></tr>'
    for number, event in enumerate(events[:MOST_ROWS], 1):
        path = f"<td>{escape(event.path)}</td>" if several else ""
        at = format_duration(event.t_s) if event.t_s else "start"
        yield (
            f'<tr><td class="n">{number}</td><td class="n">{at}</td>{path}'
            f'<td class="n">{event.streams}</td><td class="n">{format_rate(event.goodput_bps)}</td>'
            f"<td>{escape(event.congestion or '-')}</td><td>{escape(event.reason)}</td></tr>"
        )
    yield "</table>"
    left = len(events) - MOST_ROWS
    if left > 0 or omitted:
        yield f"<p>{max(0, left) + omitted} more decisions are not listed.</p>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
