"""Machines whose time passes only while they wait, and a lab on one."""

import io
import json
import os
import shutil
from pathlib import Path

import pytest
from mpx_lab.dataset.draws import PARTS, recipes
from mpx_lab.dataset.simulated import SimulatedBench
from mpx_lab.simulator.machine import SimulatorError, run_simulated
from simulation import Run

from mpx.errors import Interrupted, MpxError, UsageError


def test_time_passes_only_while_it_waits(run: Run) -> None:
    waited, worked = run("""
        import time
        began = time.monotonic(); time.sleep(3600); print(time.monotonic() - began)
        began = time.monotonic(); sum(range(10**6)); print(time.monotonic() - began)
    """)
    assert 3600 <= float(waited) < 3600.1
    assert float(worked) < 0.001


def test_udt_is_refused(run: Run) -> None:
    (said,) = run("""
        from mpx.errors import MpxError
        from mpx_lab.traffic.udt import Library
        try:
            Library()
        except MpxError as error:
            print(error)
    """)
    assert "without mpx lab simulate" in said


def test_files_environment_and_exit_code_are_as_without_it(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "told")
    (tmp_path / "there").write_text("before")
    out, errors = io.BytesIO(), io.BytesIO()
    command = ["sh", "-c", 'cat there; echo " $MINE"; echo wrong >&2; echo after > there; exit 7']
    code = run_simulated(kernel, command, os.environ, folder=tmp_path, out=out, errors=errors)
    assert (code, out.getvalue(), errors.getvalue()) == (7, b"before told\n", b"wrong\n")
    assert (tmp_path / "there").read_text() == "after\n"


def test_what_cannot_be_run_is_told_as_a_shell_does(kernel: Path, tmp_path: Path) -> None:
    program, errors = tmp_path / "program", io.BytesIO()
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    assert run_simulated(kernel, [str(program)], os.environ, folder=tmp_path, errors=errors) == 127
    assert errors.getvalue().decode() == f"mpx: cannot run '{program}': No such file or directory\n"


def test_a_kernel_that_ends_at_once_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(SimulatorError, match="before its command"):
        run_simulated(Path("/bin/false"), ["true"], os.environ, folder=tmp_path)


def test_it_ends_with_who_waits_for_it(kernel: Path, tmp_path: Path) -> None:
    begun, mine = tmp_path / "begun", tmp_path / "linux"  # others may run the kernel meanwhile
    shutil.copy(kernel, mine)

    def check() -> None:
        if begun.exists():
            raise Interrupted

    command = ["sh", "-c", "touch begun; while :; do :; done"]
    with pytest.raises(Interrupted):
        run_simulated(mine, command, os.environ, folder=tmp_path, check=check)
    running = [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if str(mine) in _text(entry)]
    assert not running


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


LAB = """
    import json, tempfile, time
    from contextlib import ExitStack
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.record import Run
    from mpx_lab.record_reader import RecordedRun
    from mpx_lab.judged import judged
    from mpx_lab.series import goodput_bps
    from mpx_lab.topology import Topology, wan
    from mpx_lab.traffic.background import Background

    link = wan("src", "dst", 20_000_000, 0.040)
    with Lab.up(Topology("one", ("src",), ("dst",), (link,)), "simulated") as lab:
        src, dst = lab.host("src"), lab.host("dst")
        folder = Path(tempfile.mkdtemp()) / "run"
        with Run(folder, "test", {}) as run, judged(lab, run):
            where = (src, dst, dst.addresses[0], run.flows, run.epoch_s)
            with Background("tcp(congestion=cubic, streams=2)", "flow", *where):
                time.sleep(5)
                before = lab.link("wan").stats().a_to_b
                began_s = time.monotonic() - run.epoch_s
                time.sleep(20)
                after = lab.link("wan").stats().a_to_b
                ended_s = time.monotonic() - run.epoch_s
                lab.link("wan").change(rate_bps=10_000_000)
                slow = lab.link("wan").stats().a_to_b
                time.sleep(20)
                last = lab.link("wan").stats().a_to_b
            with ExitStack() as both:
                back = (dst, src, src.addresses[0], *where[3:])
                for (name, spec), way in zip({others}.items(), (where, back)):
                    both.enter_context(Background(spec, name, *way))
                time.sleep(10)
        print((after.delivered.bytes - before.delivered.bytes) * 8 / 20e6)
        print((last.delivered.bytes - slow.delivered.bytes) * 8 / 20e6)
        print(after.dropped_queue.frames, last.shape.rate_bps)
        print(run.validity.valid, run.validity.reasons, lab.lost_elsewhere())
        seen = RecordedRun.open(folder)
        print(goodput_bps(seen.goodput("flow"), began_s, ended_s))
        flow = json.loads((folder / "flows" / "flow.json").read_text())
        acked = sum(connection["bytes_acked"] for connection in flow["connections"])
        print(acked / sum(sample.size_bytes for sample in seen.goodput("flow")))
        for name in {others}:
            phases = [(float(row["t_s"]), int(row["on"])) for row in seen.rows(f"flows/{name}.phases.csv")]
            arrived = [(sample.t_s, sample.size_bytes) for sample in seen.goodput(name)]
            print(json.dumps([phases, arrived]))
"""
OTHERS = {
    "new": "tcp-square(on=400ms, off=600ms)",
    "square": "udp-square(rate=1Mbit/s, on=400ms, off=600ms)",
}


def assert_on_and_off(phases: list[list[float]], arrived: list[list[float]]) -> None:
    """It sends for 0.4 s of each second, and nothing arrives in between; looks are 0.1 s apart."""
    assert len(phases) > 18
    assert [on for _, on in phases[:4]] == [1, 0, 1, 0]
    at_s = [t_s for t_s, _ in phases]
    assert [off - on for on, off in zip(at_s[:-2:2], at_s[1::2], strict=False)] == pytest.approx(
        [0.4] * ((len(at_s) - 1) // 2), abs=0.06
    )
    assert [then - on for on, then in zip(at_s[::2], at_s[2::2], strict=False)] == pytest.approx(
        [1.0] * ((len(at_s) - 1) // 2), abs=0.06
    )
    for off_s, again_s in zip(at_s[1::2], at_s[2::2], strict=False):
        assert not sum(size for t_s, size in arrived if off_s + 0.3 < t_s < again_s)
        assert sum(size for t_s, size in arrived if off_s - 0.4 < t_s < off_s + 0.2) > 10_000


def test_a_lab_there_carries_what_its_links_and_generators_are_told_and_is_never_late(run: Run) -> None:
    first, then, counted, judged, goodput, acked, *others = run(LAB.replace("{others}", repr(OTHERS)))
    assert 0.93 * 20e6 < float(goodput) < 0.97 * 20e6
    assert float(acked) == pytest.approx(1, abs=0.01)
    new, square = map(json.loads, others)
    at_s = [t_s for t_s, _ in square[0]]
    on_s = sum(off - on for on, off in zip(at_s[::2], at_s[1::2], strict=False))
    assert sum(size for _, size in square[1]) * 8 / on_s == pytest.approx(1e6, rel=0.05)
    assert_on_and_off(*square)
    assert_on_and_off(*new)
    assert 19.9 < float(first) < 20.01
    assert 9.95 < float(then) < 10.01
    dropped, rate_bps = map(int, counted.split())
    assert dropped > 0 and rate_bps == 10_000_000
    assert judged == "True () 0"


STEERED = """
    import os, sys, tempfile, time
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.mpx_server import mpx_server
    from mpx_lab.own_controller import OWN
    from mpx_lab.topologies import named

    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    (folder / "file").write_bytes(os.urandom(50_000_000))
    (folder / "far").mkdir()
    with Lab.up(named("thesis-a"), "simulated", controller=OWN) as lab:
        src, dst = lab.host("src"), lab.host("dst")
        words = [sys.executable, "-m", "mpx", "copy", "-q", "--controller", OWN.rest, str(folder / "file")]
        with mpx_server(dst, folder / "far") as url:
            began_s = time.monotonic()
            src.run([*words, f"{url}/copy"], check=True)
            print(time.monotonic() - began_s)
            links = [lab.link(f"s1-s{number}") for number in (2, 3, 4, 5)]
            print(*(link.stats().a_to_b.delivered.bytes for link in links))
    print((folder / "far" / "copy").read_bytes() == (folder / "file").read_bytes())
"""


def test_its_switches_forward_at_full_rates_as_the_controller_says(run: Run) -> None:
    took, carried, same = run(STEERED)
    assert 50e6 * 8 / 400e6 < float(took) < 2.0  # over one path it takes 4.2 s
    assert min(map(int, carried.split())) > 8_000_000
    assert same == "True"


COPY = """
    import os, socket, subprocess, sys, tempfile
    from pathlib import Path
    from mpx.net import mptcp
    from mpx_lab.lab import Lab
    from mpx_lab.topology import Topology, wan

    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    (folder / "file").write_bytes(os.urandom(1_000_000))
    (folder / "far").mkdir()
    print(not mptcp.why_not(), not mptcp.why_not(socket.AF_INET6))
    link = wan("src", "dst", 100_000_000, 0.01)
    with Lab.up(Topology("one", ("src",), ("dst",), (link,)), "copies") as lab:
        src, dst = lab.host("src"), lab.host("dst")
        mpx = [sys.executable, "-m", "mpx"]
        for address in dst.addresses[:2]:
            serve = ["serve", "--host", address, "--port", "2811", "--writable", "--insecure"]
            allowed = ["--allow-from", "10.0.0.0/8", "--allow-from", "fd00::/8", str(folder / "far")]
            server = dst.popen([*mpx, *serve, *allowed], stdout=subprocess.PIPE)
            server.stdout.readline()
            there = f"[{address}]" if ":" in address else address
            url = f"ftp://{there}:2811/copy"
            src.run([*mpx, "copy", "-q", str(folder / "file"), url], check=True)
            src.run([*mpx, "copy", "-q", url, str(folder / "back")], check=True)
            server.terminate()
            server.wait()
            whole = (folder / "file").read_bytes()
            print(address, all((folder / name).read_bytes() == whole for name in ("far/copy", "back")))
            (folder / "far" / "copy").unlink()
            (folder / "back").unlink()
"""


def test_a_copy_goes_over_both_of_ip_where_one_has_no_multipath_tcp(run: Run) -> None:
    """The kernel there has Multipath TCP for IPv4 alone, as some others do."""
    has, *copied = run(COPY)
    assert has == "True False"
    assert [line.split()[1] for line in copied] == ["True", "True"]
    assert ":" in copied[1] or ":" in copied[0]


CLIENT = """
    import tempfile, time
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.record import Run
    from mpx_lab.record_reader import RecordedRun
    from mpx_lab.series import goodput_bps
    from mpx_lab.topology import Topology, wan
    from mpx_lab.traffic.background import Background

    with Lab.up(Topology("one", ("src",), ("dst",), (wan("src", "dst", 100_000_000, 0.1),)), "rpc") as lab:
        src, dst = lab.host("src"), lab.host("dst")
        with Run(Path(tempfile.mkdtemp()) / "run", "test", {}) as run:
            where = (src, dst, dst.addresses[0], run.flows, run.epoch_s)
            with Background("rpc(block=6500B, slots=16)", "client", *where):
                time.sleep(20)
    rows = RecordedRun.open(run.folder).goodput("client")
    print(goodput_bps(rows, rows[0].t_s + 10, rows[0].t_s + 18) / (16 * 6500 * 8 / 0.1))
"""


def test_a_client_of_blocks_has_its_slots_in_each_round_trip(run: Run) -> None:
    (share,) = run(CLIENT)
    assert 0.9 < float(share) < 1.0


LIMITS = """
    from mpx.errors import UsageError
    from mpx_lab.lab import Lab
    from mpx_lab.topology import Link, Topology

    lossy = Link("src", "dst", "wan", rate_bps=20_000_000, delay_s=0.01, queue_packets=50, loss=0.2)
    with Lab.up(Topology("one", ("src",), ("dst",), (lossy,)), "simulated") as lab:
        before = lab.link("wan").stats().a_to_b
        send = "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        send += "[(s.sendto(b'x' * 1000, ('10.0.0.2', 9)), time.sleep(0.01)) for _ in range(500)]"
        lab.host("src").run(["python3", "-c", send], check=True)
        there = lab.link("wan").stats().a_to_b
        print(there.dropped_loss.frames, there.received.frames - before.received.frames)
        for change in ({"rate_bps": None}, {"queue_bytes": 100_000}, {"fair_queue": True}):
            try:
                lab.link("wan").change(**change)
            except UsageError as error:
                print(error)
        lab.link("wan").change("b-to-a", queue_packets=60, delay_s=0.02)
        stats = lab.link("wan").stats()
        print(stats.a_to_b.shape.delay_s, stats.b_to_a.shape.delay_s, stats.b_to_a.shape.queue_packets)
"""


LOSSY = """
    import tempfile, time
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.topology import Link, Topology
    from mpx_lab.traffic.background import Background

    lossy = Link("src", "dst", "wan", rate_bps=20_000_000, delay_s=0.01, loss=0.01)
    with Lab.up(Topology("one", ("src",), ("dst",), (lossy,)), "simulated") as lab:
        where = (lab.host("src"), lab.host("dst"), "10.0.0.2", Path(tempfile.mkdtemp()), time.monotonic())
        with Background("tcp(congestion=bbr)", "flow", *where):
            time.sleep(20)
            there = lab.link("wan").stats().a_to_b
    print(there.delivered.frames, there.dropped_loss.frames / there.received.frames)
"""


def test_a_link_there_loses_single_frames_of_tcp(run: Run) -> None:
    delivered, lost = run(LOSSY)[0].split()
    assert int(delivered) > 20_000
    assert float(lost) == pytest.approx(0.01, rel=0.3)


NO_DELAY = """
    import tempfile, time
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.topology import Link, Topology
    from mpx_lab.traffic.background import Background

    near = Link("src", "dst", "wan", rate_bps=20_000_000, queue_bytes=50_000)
    with Lab.up(Topology("one", ("src",), ("dst",), (near,)), "simulated") as lab:
        where = (lab.host("src"), lab.host("dst"), "10.0.0.2", Path(tempfile.mkdtemp()), time.monotonic())
        with Background("tcp(congestion=cubic)", "flow", *where):
            time.sleep(10)
            print(lab.link("wan").stats().a_to_b.dropped_queue.frames)
"""


def test_tcp_fills_the_queue_of_a_link_without_a_delay(run: Run) -> None:
    (dropped,) = run(NO_DELAY)
    assert int(dropped) > 10


def test_a_link_there_loses_and_refuses_what_it_cannot(run: Run) -> None:
    counted, *refused, last = run(LIMITS)
    lost, received = map(int, counted.split())
    assert 0.1 < lost / received < 0.3
    assert 500 <= received < 510  # and some that ask for an address
    assert len(refused) == 3 and all("not added or removed" in line for line in refused)
    assert last == "0.01 0.02 60"


def test_folders_that_are_not_seen_there_are_refused() -> None:
    with pytest.raises(UsageError, match="its own /run"):
        run_simulated(Path("/bin/true"), ["true"], {}, folder=Path("/run/user"))


def test_a_run_that_fails_there_says_why(kernel: Path, tmp_path: Path) -> None:
    recipe = recipes(PARTS, 2, 1)[0]
    with pytest.raises(MpxError, match=f"no run '{recipe.name}' among 1 links of seed 5"):
        SimulatedBench(kernel, 1, 5).measure(recipe, tmp_path / "run", 1)


def test_a_collection_that_is_ended_ends_its_machines(kernel: Path, tmp_path: Path) -> None:
    bench = SimulatedBench(kernel, 2, 1)
    bench.stop.set()
    with pytest.raises(Interrupted):
        bench.measure(recipes(PARTS, 2, 1)[0], tmp_path / "run", 1)
