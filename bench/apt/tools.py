"""The tools that are compared, by name, and the command line of each."""

import sys

FIXED = "fixed-"
PAPER = "paper"
PAPER_LONG = "paper-10s"
PLAIN = "plain"  # one TCP stream of the lab's own, as the kernel sends it
TOOLS = ("auto", PAPER, PAPER_LONG, PLAIN, "guc", "guc-p4", "fixed-N")


def fixed(streams: int) -> str:
    """Return the name of mpx with so many streams."""
    return f"{FIXED}{streams}"


def is_mpx(tool: str) -> bool:
    """Whether it is mpx, which writes a report."""
    return tool != PLAIN and not tool.startswith("guc")


def command_of(tool: str, source: str, url: str, report: str) -> list[str]:
    """Return the command that copies a file up to a URL, without a checksum; mpx writes its report.

    Raises ValueError for a tool of another name.
    """
    if tool == "guc":
        return ["globus-url-copy", f"file://{source}", url]
    if tool == "guc-p4":
        return ["globus-url-copy", "-p", "4", f"file://{source}", url]
    mpx = [sys.executable, "-m", "mpx", "copy", "-q", "--checksum", "none", "--report", report]
    if tool.startswith(FIXED):
        mpx += ["--streams", tool.removeprefix(FIXED)]
    elif tool == PAPER:
        mpx += ["--tuner", "paper"]
    elif tool == PAPER_LONG:
        mpx += ["--tuner", "paper", "--chunk-time", "10s"]
    elif tool != "auto":
        raise ValueError(f"{tool!r} is none of {', '.join(TOOLS)}")
    return [*mpx, source, url]
