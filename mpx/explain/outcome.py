"""What was copied, how long it took, and whether it is known to be right. Pure."""

from collections.abc import Iterator

from mpx.choices import ACTIVELY, FAIR, NONE, PAPER
from mpx.explain.finding import Finding, FindingKind, fact
from mpx.explain.record import CopyRecord
from mpx.location import shown_place
from mpx.units import counted, format_duration, format_rate, format_size

SHORT_S = 0.05  # a part of a copy that is not worth a word


def outcome(record: CopyRecord) -> Iterator[Finding]:
    """Yield the result as a whole."""
    if record.dry_run:
        yield fact(
            f"a dry run: {counted(record.files.total, 'file')} found, {format_size(record.bytes.total)}; "
            "nothing was copied"
        )
    else:
        yield _copied(record)
    yield fact(f"from {shown_place(record.source)} to {shown_place(record.destination)}")
    if record.status != "done" and record.error:
        how = "failed" if record.status == "failed" else "was interrupted"
        yield Finding(FindingKind.PROBLEM, f"it {how}: {record.error.removeprefix('interrupted; ')}")
    if record.dry_run:
        return
    yield from _asked(record)
    yield from _phases(record)
    yield from _checked(record)
    yield from _multipath_tcp(record)


def _copied(record: CopyRecord) -> Finding:
    files, size = record.files, record.bytes
    took = format_duration(record.duration_s)
    if not files.moved + files.resumed and record.status == "done":
        return fact(f"nothing was copied: {files.skipped} of {counted(files.total, 'file')} skipped")
    if not files.moved + files.resumed:
        arrived = sum(each.arrived_bytes for each in record.intervals)
        carried = f"; {format_size(arrived)} of data arrived in {took}" if arrived else f", after {took}"
        return fact(f"none of {counted(files.total, 'file')} got its final name{carried}")
    text = f"copied {files.moved + files.resumed} of {counted(files.total, 'file')}, "
    text += f"{format_size(size.moved + size.resumed)} in {took}, {format_rate(record.goodput_bps)}"
    if size.resumed:
        text += f"; {format_size(size.resumed)} of it came with an earlier run"
    if files.skipped:
        text += f"; {files.skipped} skipped"
    if files.failed:
        text += f"; {files.failed} failed"
    return fact(text)


def _asked(record: CopyRecord) -> Iterator[Finding]:
    """Yield by which options it was to find its way over a network."""
    if not record.is_upload and not record.is_download:
        return
    asked, words = record.settings, []
    if asked.policy:
        words.append(f"--policy {asked.policy}")
    if asked.congestion:
        words.append(f"--congestion {asked.congestion}")
    if asked.tuner == PAPER:
        words.append("--tuner paper")
    if asked.probe_first_s:
        words.append(f"--probe-first {asked.probe_first_s:g}s")
        if asked.probe_mode == ACTIVELY:
            words.append(f"--probe-mode {ACTIVELY}")
        elif asked.classifier:
            words.append(f"--classifier {asked.classifier}")
    if asked.streams:
        words.append(f"--streams {asked.streams}")
    elif asked.share and asked.policy == FAIR and asked.tuner != PAPER:
        words.append(f"--share {asked.share}")
    if asked.bandwidth_bps:
        words.append(f"--bandwidth {format_rate(asked.bandwidth_bps).replace(' ', '')}")
    if asked.rate_bps:
        words.append(f"--rate {format_rate(asked.rate_bps).replace(' ', '')}")
    if words:
        yield fact(f"options: {' '.join(words)}")
    if record.controller:
        paths = counted(len(record.offered), "path")
        began = record.congestion or "not chosen by mpx"
        yield fact(f"{paths} from the controller {record.controller}")
        yield fact(f"congestion control: {began}, at first and where a path says nothing else")


def after_data_s(record: CopyRecord) -> float | None:
    """Return how long the copy went on after its last data had arrived, seconds; None where not known."""
    last_s = max((each.until_s for each in record.intervals if each.arrived_bytes), default=None)
    if record.flow_began_s is None or last_s is None:
        return None
    return max(0.0, record.duration_s - record.flow_began_s - last_s)


def _phases(record: CopyRecord) -> Iterator[Finding]:
    """Yield how long it took to begin, to move data, and to end."""
    after_s = after_data_s(record)
    if record.flow_began_s is None or after_s is None:
        return
    moved_s = max(0.0, record.duration_s - record.flow_began_s - after_s)
    began = format_duration(record.flow_began_s)
    parts = [f"connecting and looking at both ends took {began} (times below count from there)"]
    parts.append(f"data moved for {format_duration(moved_s)}")
    if after_s >= SHORT_S:
        what = "checksums and final names" if record.status == "done" else "the end"
        parts.append(f"{what} took {format_duration(after_s)} after the last data")
    yield fact("; ".join(parts))


def _checked(record: CopyRecord) -> Iterator[Finding]:
    by = ", ".join(f"{name} {format_size(size)}" for name, size in record.compared.items() if name != NONE)
    if record.checksum == "verified":
        where = "at both ends" if not record.of_passed_bytes else "where it is stored as it had on its way"
        yield fact(f"verified: each file has the same checksum {where}" + (f" ({by})" if by else ""))
    elif record.checksum == "unverified":
        size = format_size(record.compared.get(NONE, 0))
        yield Finding(FindingKind.PROBLEM, f"not verified: {size} got their final names without a checksum")
    elif record.checksum == "mismatch":
        yield Finding(FindingKind.PROBLEM, "the checksums of a file differed though its data were sent twice")


def _multipath_tcp(record: CopyRecord) -> Iterator[Finding]:
    if record.subflows is None:
        return
    in_use = [each for each in record.subflows if each]
    if not in_use:
        yield fact("Multipath TCP was asked for; no stream used it")
    else:
        streams, most = counted(len(record.subflows), "stream"), counted(max(in_use), "subflow")
        yield fact(f"{len(in_use)} of {streams} used Multipath TCP, {most} at most")
