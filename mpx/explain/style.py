"""The style of the page: readable on light and on dark, with colours that the colour-blind tell apart.

Of curves: Okabe and Ito's, darker on light and lighter on dark, so that each has a contrast of 3 and more.
"""

from collections.abc import Mapping

CURVES_LIGHT = ("#0072b2", "#c75000", "#00805f", "#a8467c", "#7a6a00", "#2f8fc4", "#5b5b5b", "#8a3a00")
_CURVES_DARK = ("#56b4e9", "#ffa04d", "#2fc79b", "#e59bc4", "#e6d64a", "#9fd3f5", "#c0c0c0", "#e8b48a")

BARS_LIGHT = {
    "none": "#d5d5d5",
    "unknown": "#ebebeb",
    "cubic": "#a9cfe8",
    "bbr": "#f6c39a",
    "other": "#c9e3d3",
}
_BARS_DARK = {
    "none": "#4a5056",
    "unknown": "#2a2f34",
    "cubic": "#1f5578",
    "bbr": "#8a4a17",
    "other": "#2c5f45",
}


def _colours(curves: tuple[str, ...], bars: Mapping[str, str]) -> str:
    """Return them as properties of CSS."""
    named = {f"c{at}": colour for at, colour in enumerate(curves)}
    named |= {f"bar-{kind}": colour for kind, colour in bars.items()}
    return " ".join(f"--{name}:{colour};" for name, colour in named.items())


STYLE = f"""
:root {{ color-scheme: light dark; --paper:#fff; --ink:#1b1b1b; --soft:#5a5a5a; --line:#dcdcdc;
  --mark:#9a9a9a; --empty:#f2f2f2; --limit:#7a5200; --problem:#a40000; --advice:#005a30;
  {_colours(CURVES_LIGHT, BARS_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper:#14171a; --ink:#e8e8e8; --soft:#a8adb2;
  --line:#32373c; --mark:#767c82; --empty:#1d2125; --limit:#e6b450; --problem:#ff8f87; --advice:#6fd39b;
  {_colours(_CURVES_DARK, _BARS_DARK)} }} }}
body {{ margin: 0 auto; max-width: 62rem; padding: 1.2rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }}
h1 {{ font-size: 1.35rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.05rem; margin: 1.4rem 0 .3rem; }}
p, li, td {{ overflow-wrap: anywhere; }}
.lead {{ color: var(--soft); margin: 0 0 1rem; }}
ul {{ margin: 0; padding-left: 1.2rem; }}
li.limit::marker, li.limit b {{ color: var(--limit); }}
li.problem::marker, li.problem b {{ color: var(--problem); }}
li.advice::marker, li.advice b {{ color: var(--advice); }}
svg {{ width: 100%; height: auto; display: block; margin: .6rem 0; }}
svg text {{ font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }}
svg text.title {{ font-weight: 600; font-size: 13px; }}
svg text.title, svg text.tick, svg text.number {{ paint-order: stroke; stroke: var(--paper);
  stroke-width: 5px; stroke-linejoin: round; }}
svg text.tick {{ fill: var(--soft); }}
svg text.number {{ fill: var(--soft); font-size: 11px; }}
svg text.in {{ font-size: 11.5px; }}
.grid {{ stroke: var(--line); stroke-width: 1; }}
.axis {{ stroke: var(--soft); stroke-width: 1; }}
.mark {{ stroke: var(--mark); stroke-width: 1; stroke-dasharray: 3 3; }}
.curve {{ fill: none; stroke-width: 1.8; stroke-linejoin: round; }}
.curve.faint {{ stroke-width: 1.3; stroke-dasharray: 5 3; }}
.empty {{ fill: var(--empty); }}
{" ".join(f".bar.{kind} {{ fill: var(--bar-{kind}); }}" for kind in BARS_LIGHT)}
{"".join(f".curve.c{n} {{ stroke: var(--c{n}); }} .dot.c{n} {{ fill: var(--c{n}); }} " for n in range(8))}
table {{ border-collapse: collapse; width: 100%; font-size: 13px; }}
th, td {{ text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }}
td.n, th.n {{ text-align: right; white-space: nowrap; }}
footer {{ color: var(--soft); font-size: 13px; margin-top: 1.5rem; }}
"""
