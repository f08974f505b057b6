"""What is told of a copy follows from its report."""

from typing import Any

import pytest
from explained import NAMES, record, stored, told

from mpx.explain.faster import MUCH
from mpx.explain.story import MOST_NOTES, tell
from mpx.explain.told import WIDTH, lines

COPY, PATH, FASTER, NOTES = "the copy", "the path", "what would have been faster", "notes of the copy"


def test_a_copy_beside_others() -> None:
    story = told(stored("background"))
    assert story[COPY] == [
        "fact: none of 1 file got its final name; 339 MiB of data arrived in 1 min 30 s",
        "fact: from /data/run7/large.h5 to ftp://dtn.example.org/data/large.h5",
        "problem: it was interrupted: copy the same SRC to the same DST again to continue",
        "fact: options: --policy fair --congestion auto --share 4",
        "fact: connecting and looking at both ends took 120 ms (times below count from there); data moved "
        "for 1 min 30 s; the end took 259 ms after the last data",
    ]
    assert story[PATH][:4] == [
        "fact: round-trip time 40 ms at its shortest, up to 79.1 ms while data moved",
        "limit: the path was full: a queue stood in it for 100% of the time",
        "fact: 4 streams from start to end, 31.7 Mbit/s",
        "fact: background: nobody else from 9.61 s to 20.8 s; one CUBIC stream (C) from 20.8 s to 46.4 s; "
        "one BBR stream (B) from 48 s to 1 min 04 s; two BBR streams (BB) from 1 min 07 s to 1 min 28 s",
    ]
    assert "fact: congestion control: cubic" in story[PATH]
    assert any(line.startswith("fact: at 55.7 s: switched to bbr: the background") for line in story[PATH])
    assert "fact: 9936 segments sent again, 3.89% of all" in story[PATH]
    assert any(line.startswith("fact: at 32.9 s: the path is full: 0.07%") for line in story[PATH])
    (advice,) = story[FASTER]
    assert "others were recognised on it for 75% of the time" in advice and "--policy fast" in advice
    assert story[NOTES] == ["fact: background classified 59 times: C 25, none 14, B 10, BB 9, BC 1"]


def test_findings_that_differ_by_their_figures_alone_are_told_once() -> None:
    report = stored("background")
    last = report["timeline"][-1]
    for number in range(1, 4):
        later = {"t_s": last["t_s"] + number, "reason": f"{number}.5 Mbit/s with 4 streams; search ended"}
        report["timeline"].append({**last, **later})
    found = [line for line in told(report)[PATH] if "search ended" in line or "more finding" in line]
    assert len(found) == 2
    assert found[0].endswith(": 1.5 Mbit/s with 4 streams; search ended")
    assert found[1] == "fact: and 2 more findings like these"


def test_a_window_that_is_too_small() -> None:
    story = told(stored("window"))
    assert "limit: the window of the receiver held the streams back for 69% of the time" in story[PATH]
    assert "fact: at 1 s: 24 streams, 151 Mbit/s (+474%) for 1.1 s" in story[PATH]
    (advice,) = story[FASTER]
    assert "the receiver, dtn.example.org" in advice and "net.ipv4.tcp_rmem" in advice
    assert "1 Gbit/s over 60 ms needs 7.15 MiB" in advice


def test_a_limit_of_rate_is_the_reason_and_the_source_is_not() -> None:
    story = told(stored("rate"))
    assert "limit: the streams had nothing to send for 37% of the time" in story[PATH]
    assert story[FASTER] == [
        "advice: a higher --rate: 20 Mbit/s was permitted, and data moved at 19.9 Mbit/s"
    ]


def test_a_limit_of_rate_is_the_reason_beside_an_outage_as_well() -> None:
    report = stored("rate")
    later = len(report["intervals"]) // 2
    for interval in report["intervals"][later:]:
        interval["from_s"] += 30.0
        interval["until_s"] += 30.0
    assert told(report)[FASTER][0].startswith("advice: a higher --rate: 20 Mbit/s was permitted")


@pytest.mark.parametrize("setting", ["streams", "max_streams"])
def test_beside_a_limit_of_rate_more_streams_are_no_advice(setting: str) -> None:
    report = stored("rate")
    report["settings"][setting] = 1
    for interval in report["intervals"]:
        interval |= {"idle": 0.0, "queue_s": 0.0}
    (advice,) = told(report)[FASTER]
    assert advice.startswith("advice: a higher --rate")


def test_the_tuner_of_the_paper_has_streams_wait_between_chunks() -> None:
    report = stored("rate")
    report["settings"] |= {"rate_bps": None, "tuner": "paper"}
    (advice,) = told(report)[FASTER]
    assert advice.startswith("advice: no --tuner paper: streams had nothing to send for 37% of the time")


def test_a_source_that_is_slow() -> None:
    report = stored("rate")
    report["settings"]["rate_bps"] = None
    (advice,) = told(report)[FASTER]
    assert advice.startswith("advice: a faster source: streams had nothing to send for 37% of the time")
    report["cpu_s"] = report["duration_s"] * 1.1
    (advice,) = told(report)[FASTER]
    assert advice.startswith("advice: more processor: mpx took 110% of one core")


def test_a_copy_that_yields_waits_for_no_source() -> None:
    report = stored("rate")
    report["settings"] |= {"rate_bps": None, "policy": "scavenger"}
    (advice,) = told(report)[FASTER]
    assert advice.startswith("advice: another --policy: with scavenger a copy takes only what")


def test_an_outage() -> None:
    story = told(stored("outage"))
    assert story[PATH][-1].startswith("problem: no data from 8")
    (advice,) = story[FASTER]
    assert advice.startswith("advice: no outage: no data arrived for 8")


def test_several_outages_are_one_line() -> None:
    report = stored("outage")
    for at in range(28, 34):
        report["intervals"][at]["arrived_bytes"] = 0
    (advice,) = told(report)[FASTER]
    assert "in 2 times, the first from 8" in advice


def test_silence_without_a_stream_is_no_outage() -> None:
    report = stored("outage")
    for interval in report["intervals"]:
        if not interval["arrived_bytes"]:
            interval["streams"] = 0
    assert not [line for chapter in told(report).values() for line in chapter if "no data" in line]


def test_many_small_files() -> None:
    report = stored("rate")
    report["settings"]["rate_bps"] = None
    report["files"] |= {"total": 400, "moved": 400}
    (advice,) = told(report)[FASTER]
    assert advice.startswith("advice: larger files: streams had nothing to send for 37% of the time")
    assert "400 files has 97.7 KiB in the mean" in advice


def test_what_was_not_copied() -> None:
    skipped = quiet(files={"total": 3, "moved": 0, "resumed": 0, "skipped": 3, "failed": 0}, intervals=[])
    assert told(skipped)[COPY][0] == "fact: nothing was copied: 3 of 3 files skipped"
    failed = stored("rate") | {"status": "failed", "error": "no space"}
    failed["files"] |= {"moved": 0, "failed": 1}
    for interval in failed["intervals"]:
        interval["arrived_bytes"] = 0
    story = told(failed)
    assert story[COPY][0] == "fact: none of 1 file got its final name, after 16.2 s"
    assert "problem: it failed: no space" in story[COPY]
    assert PATH not in story  # nothing moved there


def test_a_copy_within_this_host_has_no_words_of_a_network() -> None:
    story = told(stored("rate") | {"destination": "/data/copy"})
    assert not [line for line in (*story[COPY], *story[PATH]) if "congestion" in line]


def test_a_download_says_what_it_cannot_know_and_what_is_not_permitted() -> None:
    story = told(stored("download"))
    assert "fact: whether windows held the streams back is not known, as the other side sent" in story[PATH]
    assert "fact: congestion control: not chosen by mpx" in story[PATH]
    assert any("ip route change" in line for line in story[FASTER])
    assert NOTES not in story  # its only note is that advice


def test_several_paths_are_told_one_by_one() -> None:
    story = told(stored("four_paths"))
    assert [f"path {n}" in story for n in range(4)] == [True] * 4
    assert (
        "fact: carried 501 MiB, 40% of all, at 93.4 Mbit/s; the controller expected 100 Mbit/s"
        in story["path 3"]
    )
    assert (
        "fact: at 20 s: the controller reports it down; its streams moved to other paths" in story["path 1"]
    )
    assert any("4 paths from the controller" in line for line in story[COPY])


def test_a_stuck_path() -> None:
    report = stored("four_paths")
    for interval in report["intervals"]:
        if interval["path"] == "2":
            interval["arrived_bytes"] //= 50
    assert any("all paths alike: path 2 carried" in line for line in told(report)[FASTER])


def quiet(**more: Any) -> dict[str, Any]:
    """Return a report in which nothing but the plainest is known."""
    report = stored("rate")
    unknown = ("idle", "limited_by_receiver", "limited_by_sender", "queue_s", "rtt_s")
    for interval in report["intervals"]:
        interval.update(dict.fromkeys(unknown))
    report["settings"]["rate_bps"] = None
    report["decisions"] |= {"rtt_s": None, "tcpi_rtt_s": None}
    return report | more


def test_what_a_report_does_not_say_is_not_told() -> None:
    story = told(quiet())
    assert FASTER not in story
    assert story[PATH] == [
        "fact: 4 streams from start to end, 19.9 Mbit/s",
        "fact: congestion control: cubic",
    ]


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        (
            {"limited_by_sender": 0.5},
            "a larger send buffer on this host: raise the third number of net.ipv4.tcp_wmem",
        ),
        ({"limited_by_receiver": MUCH + 0.01}, "a larger window at the receiver"),
        ({"limited_by_receiver": MUCH - 0.01}, None),
    ],
)
def test_each_limit_has_its_advice(changes: dict[str, float], advice: str | None) -> None:
    report = quiet()
    for interval in report["intervals"]:
        interval.update(changes)
    found = told(report).get(FASTER, [])
    assert (advice is None and not found) or any(str(advice) in line for line in found)


@pytest.mark.parametrize(
    ("settings", "queue_s", "advice"),
    [
        ({"streams": 4}, 0.0, "--streams 4 fixed their number, and the path was not full"),
        ({"streams": 4}, 0.5, None),
        ({"max_streams": 4}, 0.0, "--max-streams 4 was reached, and the path was not full"),
        ({"max_streams": 5}, 0.0, None),
    ],
)
def test_streams_that_were_forbidden(settings: dict[str, int], queue_s: float, advice: str | None) -> None:
    report = quiet()
    report["settings"] |= settings
    for interval in report["intervals"]:
        interval["queue_s"] = queue_s
    found = [line for line in told(report).get(FASTER, []) if line.startswith("advice")]
    assert (advice is None and not found) or any(str(advice) in line for line in found)


def test_a_full_path_is_the_end_of_advice() -> None:
    report = quiet()
    for interval in report["intervals"]:
        interval["queue_s"] = 0.5
    assert told(report)[FASTER] == [
        "limit: nothing that the report shows: the path was full for 100% of the time"
    ]


def test_a_long_start_and_a_long_end() -> None:
    begun = told(quiet(duration_s=36.0, flow_began_s=19.0))[FASTER]
    assert begun[0].startswith("advice: a quicker start: 19 s of 36 s")
    probed = quiet(duration_s=36.0, flow_began_s=19.0)
    probed["settings"]["probe_first_s"] = 15.0
    (advice,) = told(probed)[FASTER]
    assert advice.endswith("15 s of them were of --probe-first: leave it out")
    ended = told(quiet(duration_s=36.0))[FASTER]
    assert ended[0].startswith("advice: a quicker end: 19.8 s of 36 s")
    assert "for checksums and final names" in ended[0]


@pytest.mark.parametrize(
    ("result", "compared", "line"),
    [
        (
            "verified",
            {"xxh3": 1024},
            "fact: verified: each file has the same checksum at both ends (xxh3 1 KiB)",
        ),
        (
            "unverified",
            {"none": 1024},
            "problem: not verified: 1 KiB got their final names without a checksum",
        ),
        ("mismatch", {}, "problem: the checksums of a file differed though its data were sent twice"),
    ],
)
def test_checksums(result: str, compared: dict[str, int], line: str) -> None:
    checksum = {"algorithm": "xxh3", "result": result, "bytes": compared}
    assert line in told(quiet(checksum=checksum))[COPY]


def test_a_rehearsal_has_no_path() -> None:
    story = told(quiet(dry_run=True, timeline=[], intervals=[]))
    assert list(story) == [COPY]
    assert story[COPY][0] == "fact: a dry run: 1 file found, 38.1 MiB; nothing was copied"


def test_failures_and_many_notes() -> None:
    failures = [{"name": "a", "error": "a: gone"}, {"name": "b", "error": "no"}]
    notes = told(quiet(notes=[f"note {n}" for n in range(20)], failures=failures))[NOTES]
    assert len(notes) == MOST_NOTES + 1 + 2
    assert notes[MOST_NOTES:] == [
        "fact: and 12 more notes in the report", "problem: not copied: a: gone", "problem: not copied: b: no"
    ]  # fmt: skip


def test_multipath_tcp() -> None:
    plain = [{"in_use": False, "subflows": 0}]
    used = [*plain, {"in_use": True, "subflows": 2}]
    assert "fact: Multipath TCP was asked for; no stream used it" in told(quiet(mptcp=plain))[COPY]
    assert "fact: 1 of 2 streams used Multipath TCP, 2 subflows at most" in told(quiet(mptcp=used))[COPY]


def test_times_of_an_attempt_that_was_given_up_are_not_mixed_in() -> None:
    report = stored("window")
    lost = report["timeline"][0] | {"t_s": 50.0, "streams": 99, "reason": "of another attempt"}
    report["timeline"].insert(0, lost)
    assert told(report)[PATH] == told(stored("window"))[PATH]


@pytest.mark.parametrize("t_s", [0.0, 50.0])
def test_paths_of_an_attempt_that_was_given_up_are_not_told(t_s: float) -> None:
    """A server that cannot connect to us ends the use of several paths."""
    report = stored("window")
    most = report["settings"]["max_streams"]
    first = report["timeline"][0]
    report["timeline"][:0] = [first | {"t_s": t_s, "path": path, "streams": most} for path in "01"]
    assert told(report) == told(stored("window"))


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_few_and_short(name: str) -> None:
    said = list(lines(tell(record(stored(name)))))
    assert all(len(line) <= WIDTH for line in said)
    assert len(said) <= (60 if name == "four_paths" else 40)
