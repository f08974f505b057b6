"""What web servers tell of files is not believed: digests that are wrong, or none, or late."""

import base64
import hashlib
import os
import subprocess
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import pytest
from web.given_options import GivenOptions
from web.servers.private_network import private_network, within
from web.servers.scripted import Headers, ScriptedSite, scripted_site

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.endpoint import WebEndpoint
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import Part
from mpx.errors import ConnectionLost, IntegrityError, Interrupted, NoChecksum, UsageError
from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.report import Report
from mpx.transfer.copy import copy

SHORT, LONG = bytes(range(100)), bytes(range(251)) * 5000
md5 = hashlib.md5
ALGORITHMS: dict[str, Callable[[bytes], str]] = {
    "adler32": lambda data: f"{zlib.adler32(data):08x}",
    "md5": lambda data: md5(data).hexdigest(),
}


def down(site: ScriptedSite, folder: Path, *names: str, **options: Unpack[GivenOptions]) -> Report:
    (folder / "to").mkdir()
    urls = [site.url + name for name in names]
    return copy(urls, f"{folder}/to/", CopyOptions(**options))


def told(text: str) -> Callable[[str, str], Headers]:
    """One header, with the right digest of the file `short` in the place of {}."""
    return lambda _, wanted: dict([text.format(ALGORITHMS[wanted](SHORT)).split(": ", 1)])


@pytest.mark.parametrize("form", ["Digest: md5={hex}", "Digest: MD5={base64}", "Repr-Digest: md5=:{base64}:"])
def test_a_digest_that_is_right_verifies(tmp_path: Path, form: str) -> None:
    digest = md5(SHORT).digest()
    header, value = form.format(hex=digest.hex(), base64=base64.b64encode(digest).decode()).split(": ")
    with scripted_site(lambda *_: {header: value}) as site:
        site.files["/short"] = SHORT
        report = down(site, tmp_path, "short")
    assert report.checksum["bytes"] == {"md5": len(SHORT)}
    assert (tmp_path / "to" / "short").read_bytes() == SHORT


@pytest.mark.parametrize(
    "lie",
    [
        "Digest: sha-256={}",
        "Digest: md5=0{}",
        "Digest: md5={}0, md5",
        "Digest: crc32c={}",
        "Digest: md5 = {}",
        "Digest: md5={}, md5=00000000000000000000000000000000",
        "Content-MD5: {}ff",
        "Digest: {}",
        "X-Digest: md5={}",
    ],
)
def test_what_is_no_digest_of_the_kind_that_is_asked_for_never_verifies(tmp_path: Path, lie: str) -> None:
    with scripted_site(told(lie)) as site:
        site.files["/short"] = SHORT
        report = down(site, tmp_path, "short")
    assert report.checksum["bytes"] == {"none": len(SHORT)}
    assert any(note.startswith("unverified: the server computes no checksums: ") for note in report.notes)


def test_headers_that_contradict_each_other_verify_nothing(tmp_path: Path) -> None:
    def both(_: str, wanted: str) -> Headers:
        right = ALGORITHMS[wanted](SHORT)
        return {"Digest": f"{wanted}={right}", "Repr-Digest": f"{wanted}={'0' * len(right)}"}

    with scripted_site(both) as site:
        site.files["/short"] = SHORT
        assert down(site, tmp_path, "short").checksum["result"] == "unverified"


@pytest.mark.parametrize("content", [SHORT, LONG], ids=["short", "long"])
def test_another_digest_has_the_file_fetched_once_more(tmp_path: Path, content: bytes) -> None:
    def wrong(_: str, wanted: str) -> Headers:
        return {"Digest": f"{wanted}={ALGORITHMS[wanted](content + b'more')}"}

    with scripted_site(wrong) as site:
        site.files["/file"] = content
        with pytest.raises(IntegrityError) as raised:
            down(site, tmp_path, "file")
    assert raised.value.exit_code == 8
    assert not (tmp_path / "to" / "file").exists()
    assert sum(method == "GET" for method, _ in site.asked) >= 2


def test_a_digest_that_changes_verifies_only_once_it_is_right(tmp_path: Path) -> None:
    given: list[str] = []

    def changing(_: str, wanted: str) -> Headers:
        given.append("0" * 32 if not given else ALGORITHMS[wanted](SHORT))
        return {"Digest": f"{wanted}={given[-1]}"}

    with scripted_site(changing) as site:
        site.files["/short"] = SHORT
        report = down(site, tmp_path, "short")
    assert report.checksum["bytes"] == {"md5": len(SHORT)}
    assert any("sent again" in note for note in report.notes)


def test_what_is_stored_otherwise_is_found_by_reading_back(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(LONG)
    with scripted_site(name="nginx") as site:
        site.damage = lambda content: content[:-1] + bytes([content[-1] ^ 1])
        with pytest.raises(IntegrityError):
            copy(source, f"{site.url}file", CopyOptions(checksum="md5"))
        assert (site.stored, site.files) == (2, {})


def test_a_server_that_computes_none_is_refused_when_asked_by_name(tmp_path: Path) -> None:
    with scripted_site() as site:
        site.files["/short"] = SHORT
        with pytest.raises(UsageError, match="--checksum md5 is not possible here"):
            down(site, tmp_path, "short", checksum="md5")


# --- one question ---------------------------------------------------------------------------------------


def endpoint(
    url: str, stop: threading.Event, timeout_s: float, *, digest_timeout_s: float = 3600
) -> WebEndpoint:
    location = parse_location(url)
    options = WebOptions(
        connect_timeout_s=timeout_s,
        timeout_s=timeout_s,
        digest_timeout_s=digest_timeout_s,
        stop=stop.is_set,
    )
    return WebEndpoint(location, WebAccess(location, options), writing=False, stop=stop.is_set)


def ask(end: WebEndpoint, size_bytes: int, stop: threading.Event) -> object:
    try:
        (answer,) = end.checksums("md5", [Part("/file", 0, size_bytes, is_whole=True)], stop.is_set)
        return answer
    finally:
        end.close()


def test_a_digest_may_take_longer_than_other_answers() -> None:
    usual_s, stop = 0.5, threading.Event()
    late = threading.Event()

    def slow(_: str, wanted: str) -> Headers:
        late.wait(3 * usual_s)  # nobody sets it
        return {"Digest": f"{wanted}={ALGORITHMS[wanted](SHORT)}"}

    with scripted_site(slow) as site:
        site.files["/file"] = SHORT
        assert ask(endpoint(site.url, stop, usual_s), len(SHORT), stop) == md5(SHORT).hexdigest()


def test_who_waits_for_a_digest_can_be_stopped() -> None:
    stop, is_asked, end_of_test = threading.Event(), threading.Event(), threading.Event()

    def never(*_: str) -> Headers:
        is_asked.set()
        stop.set()
        end_of_test.wait(60)
        return {}

    with scripted_site(never) as site:
        site.files["/file"] = SHORT
        with pytest.raises(Interrupted):
            ask(endpoint(site.url, stop, 60), len(SHORT), stop)
        end_of_test.set()
    assert is_asked.is_set()


def test_a_digest_that_a_server_forgets_to_tell_is_asked_for_again() -> None:
    stop, end_of_test = threading.Event(), threading.Event()
    asked: list[str] = []

    def forgets(_: str, wanted: str) -> Headers:
        asked.append(wanted)
        if len(asked) == 1:
            end_of_test.wait(60)
        return {"Digest": f"{wanted}={ALGORITHMS[wanted](SHORT)}"}

    with scripted_site(forgets) as site:
        site.files["/file"] = SHORT
        answer = ask(endpoint(site.url, stop, 60), len(SHORT), stop)
        end_of_test.set()
    assert (answer, asked) == (md5(SHORT).hexdigest(), ["md5", "md5"])


def test_a_digest_that_never_comes_is_none() -> None:
    stop, end_of_test = threading.Event(), threading.Event()

    def never(*_: str) -> Headers:
        end_of_test.wait(60)
        return {}

    with scripted_site(never) as site:
        site.files["/file"] = SHORT
        answer = ask(endpoint(site.url, stop, 60, digest_timeout_s=0.1), len(SHORT), stop)
        end_of_test.set()
    assert isinstance(answer, NoChecksum)
    assert "tells no md5 within" in str(answer)


def test_a_server_that_is_gone_is_noticed_within_the_usual_time() -> None:
    if os.geteuid() != 0:
        pytest.skip("a network of its own is made by root")
    end_of_test = threading.Event()

    def cut_off(*_: str) -> Headers:
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        end_of_test.wait(60)
        return {}

    with private_network() as namespace, within(namespace), scripted_site(cut_off) as site:
        site.files["/file"] = SHORT
        access = WebAccess(parse_location(site.url), WebOptions(connect_timeout_s=1, timeout_s=1))
        dialogue, url = WebDialogue(access), access.url_of("/file")
        try:
            ask_about = dialogue.ask("HEAD", url, {"Want-Digest": "md5"})
            with dialogue.patient(3600), pytest.raises(ConnectionLost), ask_about:
                pass
        finally:
            dialogue.close()
            end_of_test.set()
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
