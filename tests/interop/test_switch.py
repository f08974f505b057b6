"""A copy whose streams switch while they flow, both ways; what the background is, is scripted here."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from filecmp import cmp
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_lab.traffic.socket_table import SocketTable

import mpx
from mpx import ops_classifier
from mpx.choices import TREES
from mpx.endpoints.ftp.mode_e.carriers import UploadCarrier
from mpx.engine.tuner import Decision, Sample
from mpx.errors import UsageError
from mpx.net import congestion_control
from mpx.options import CopyOptions
from mpx.recognition import monitor
from mpx.recognition.mix import MIXES, Mix, likeliest
from mpx.recognition.observation import Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.report import Report
from mpx.rtt.series import Probe
from mpx.serve import Server, settings
from mpx.serve.replies import RefusalReply
from mpx.serve.session import Limits
from mpx.transfer import background, tuner_choice
from mpx.transfer.congestion_plan import SERVER_CHOOSES

Eventually = Callable[..., None]
SIZE = 16_000_000
ALL = Limits(congestion=congestion_control.usable_congestion())  # also where root runs the tests
SLOWLY = 16e6  # bit/s: eight seconds


class Says:
    """Beside whom it runs, whatever the round trips are."""

    def __init__(self, mix: str) -> None:
        self.mix = likeliest([0.99 if each == mix else 0.002 for each in MIXES])
        self.asked: list[Own] = []

    @property
    def name(self) -> str:
        return TREES

    def window_s(self, kind: str) -> float:
        return 0.5

    def classify(
        self,
        series: Sequence[Probe],
        base_s: float,
        goodput: Sequence[tuple[float, float]] | None = None,
        *,
        own: Own | None = None,
        responses: Sequence[QueueResponse] = (),
    ) -> Mix:
        assert own and goodput and series and 0 < base_s < 1
        assert all(series[0].t_s - 1 < t_s for t_s, _ in goodput[-5:])  # both are on one clock
        self.asked.append(own)
        return self.mix


def copied(source: str, destination: str, streams: int | None = 2) -> Report:
    return mpx.copy(source, destination, CopyOptions(streams=streams, rate_bps=SLOWLY))


@contextmanager
def copying(source: str, destination: str, streams: int | None = 2) -> Iterator[list[Report]]:
    """A copy on its way; its report at the end."""
    ended: list[Report] = []
    thread = threading.Thread(target=lambda: ended.append(copied(source, destination, streams)))
    thread.start()
    yield ended
    thread.join()


def congestions(but: int) -> set[str]:
    """With what connections of this process are sent, those to that port left out; other tests run beside."""
    ours = own_inodes()
    return {
        one.congestion
        for one in SocketTable().open()
        if one.inode in ours and but not in (one.local[1], one.peer[1])
    }


def own_inodes() -> set[int]:
    """Those of the sockets of this process."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source"
    file.write_bytes(bytes(range(256)) * (SIZE // 256))
    return file


@pytest.fixture
def served(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return tmp_path / "served"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The background is read soon and often, so that these copies need not last for long."""
    monkeypatch.setattr(monitor, "SETTLES_S", 0.5)
    monkeypatch.setattr(monitor, "READ_S", 0.25)


@pytest.fixture
def to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """These copies are read to their end."""
    monkeypatch.setattr(background, "WORTH_A_SWITCH_S", background.ENDING_S)


@pytest.mark.usefixtures("to_the_end")
@pytest.mark.parametrize("way", ["up", "down"])
def test_it_switches_in_the_middle(
    way: str,
    source: Path,
    served: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    says = Says("B")
    monkeypatch.setattr(ops_classifier, "load", lambda: says)
    with Server(served, writable=True, limits=ALL) as server:
        here, there = tmp_path / "here", served / "there"
        if way == "down":
            source.rename(there)
        words = (str(source), f"{server.url}there") if way == "up" else (f"{server.url}there", str(here))
        with copying(*words) as ended:
            eventually(lambda: "cubic" in congestions(server.port))
            eventually(lambda: len(says.asked) > 3)
            assert "bbr" in congestions(server.port) and "cubic" not in congestions(server.port)
    (report,) = ended
    assert cmp(source if way == "up" else here, there, shallow=False)
    assert report.decisions["congestion"] == "cubic"
    (switch,) = [event for event in report.timeline if event.reason.startswith("switched to bbr")]
    assert switch.congestion == "bbr" and "probably B" in switch.reason
    assert says.asked[0] == Own("cubic", 2, dips=True) and says.asked[-1] == Own("bbr", 2, dips=True)
    (note,) = report.notes
    assert note == f"background classified {len(says.asked)} times: B {len(says.asked)}"


@pytest.mark.usefixtures("to_the_end")
def test_where_no_descriptor_is_left_to_ask_with_the_streams_stay(
    source: Path, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(ops_classifier, "load", lambda: Says("B"))
    monkeypatch.setattr(UploadCarrier, "set_congestion", none_left)
    with Server(served, writable=True, limits=ALL) as server:
        report = copied(str(source), f"{server.url}there")
    assert cmp(source, served / "there", shallow=False)
    assert any("stay with cubic" in note and "Too many open files" in note for note in report.notes)


@pytest.mark.usefixtures("to_the_end")
def test_a_server_that_refuses_what_it_has_announced_goes_on_as_before_and_that_is_told(
    source: Path, served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = Says("B")
    monkeypatch.setattr(ops_classifier, "load", lambda: says)
    source.rename(served / "there")
    takes = settings.set_options

    def refuses(of: settings.Settings, argument: str) -> str:
        if "Congestion=bbr" in argument:
            raise RefusalReply(504, "Not any more.")
        return takes(of, argument)

    monkeypatch.setattr("mpx.serve.commands_login.set_options", refuses)
    with Server(served, limits=ALL) as server:
        report = copied(f"{server.url}there", str(tmp_path / "here"))
    assert cmp(tmp_path / "here", served / "there", shallow=False)
    assert any(
        "refuses to send with bbr, and goes on unchanged: Not any more" in note for note in report.notes
    )
    told = [event.congestion for event in report.timeline]
    assert told[:3] == ["cubic", "bbr", "cubic"]
    assert report.timeline[2].reason == "the server refused the switch and still uses cubic"
    assert {own.congestion for own in says.asked} == {"cubic"}


class Anew:
    """A tuner that asks for other streams whenever it begins anew, and for nothing else."""

    def __init__(self) -> None:
        self._anew = False

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        anew, self._anew = self._anew, False
        return [Decision(path, 3, "begins anew") for path in samples] if anew else []

    def disturbed(self, now_s: float) -> None:
        self._anew = True


@pytest.mark.usefixtures("to_the_end")
def test_the_tuner_begins_anew_after_a_switch(
    source: Path, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops_classifier, "load", lambda: Says("B"))
    monkeypatch.setattr(tuner_choice, "tuner_for", lambda *_: Anew())
    with Server(served, writable=True, limits=ALL) as server:
        report = copied(str(source), f"{server.url}there", streams=None)
    _, switched, anew = (event.reason for event in report.timeline)
    assert switched.startswith("switched to bbr") and anew == "begins anew"


def test_nobody_is_looked_for_where_little_is_left(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Says] = []

    def load() -> Says:
        loaded.append(Says("B"))
        return loaded[-1]

    monkeypatch.setattr(ops_classifier, "load", load)
    (tmp_path / "source").write_bytes(bytes(8_000_000))  # four seconds; readings would begin after one
    with Server(served, writable=True, limits=ALL) as server:
        report = copied(str(tmp_path / "source"), f"{server.url}there")
    assert report.duration_s > 3.5 and loaded == [] and report.notes == []


@pytest.mark.usefixtures("to_the_end")
def test_without_a_model_the_copy_goes_on_and_says_so(
    source: Path, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> Says:
        raise UsageError("there is no model")

    monkeypatch.setattr(ops_classifier, "load", load)
    with Server(served, writable=True, limits=ALL) as server:
        report = copied(str(source), f"{server.url}there")
        assert cmp(source, served / "there", shallow=False)
    assert report.notes == ["the background is not recognised: there is no model"]
    assert {event.congestion for event in report.timeline} == {"cubic"}


def test_a_stock_server_that_sends_is_left_alone_and_that_is_said(
    source: Path, served: Path, tmp_path: Path
) -> None:
    source.rename(served / "there")
    with StockServer(served) as stock:
        report = mpx.copy(f"{stock.url}there", str(tmp_path / "here"), CopyOptions())
    assert SERVER_CHOOSES in report.notes and report.decisions["congestion"] is None
    assert cmp(tmp_path / "here", served / "there", shallow=False)
