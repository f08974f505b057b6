"""mpx globus login and logout, and what a login is good for; no secret is seen."""

import json
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from globus.conftest import Collections
from globus.fake_globus import CLIENT_ID, ONE, OTHER, SECRET, Answer, error
from mpx_command import Ended, mpx, refused
from sites import make

DATA_ACCESS = f"https://auth.globus.org/scopes/{OTHER}/data_access"


def state(service: Collections) -> Path:
    return service.one.parent / "state/globus.json"


def log_in(service: Collections, *words: object, code: str = "good-code") -> Ended:
    """Log in as a user does, who sees the scopes at the URL and copies the code."""
    shown = mpx("globus", "login", *words, stdin=b"\n")
    url = next((line for line in shown.err.splitlines() if line.startswith("http")), "")
    service.fake.consented = parse_qs(urlsplit(url).query).get("scope", [""])[0]
    return mpx("globus", "login", *words, stdin=f"{code}\n".encode())


def copy_x(service: Collections) -> Ended:
    make(service.one / "x", 10)
    return mpx("copy", f"{service.one_url}x", f"{service.other_url}x")


def test_a_login_is_kept_for_this_account(service: Collections) -> None:
    ended = log_in(service, "--client-id", CLIENT_ID)
    assert ended.code == 0 and "logged in to Globus" in ended.err, ended.err
    assert stat.S_IMODE(state(service).stat().st_mode) == 0o600
    assert copy_x(service).code == 0
    secrets = [*service.fake.tokens, *service.fake.refresh_tokens]
    assert secrets and not any(secret in ended.err + ended.out for secret in secrets)


def test_logging_out(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    ended = mpx("globus", "logout")
    assert ended.code == 0 and not state(service).exists(), ended.err
    assert not service.fake.tokens and not service.fake.refresh_tokens
    refused(copy_x(service), 5, "mpx globus login")
    assert mpx("globus", "logout").code == 0


def test_logging_in_again_takes_back_what_was_had_before(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID, "--https", ONE).code == 0
    before = {*service.fake.tokens, *service.fake.refresh_tokens}
    ended = log_in(service)
    now = {*service.fake.tokens, *service.fake.refresh_tokens}
    assert ended.code == 0 and len(before) == len(now) == 4 and not before & now, ended.err
    assert mpx("globus", "logout").code == 0
    assert not service.fake.tokens and not service.fake.refresh_tokens


def test_what_cannot_be_taken_back_is_told(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    service.fake.lie("/revoke", error(500, "broken"), times=9)
    ended = log_in(service)
    assert ended.code == 0 and "logged in to Globus" in ended.err, ended.err
    assert "could not all be taken back" in ended.err and copy_x(service).code == 0


def test_logging_out_of_a_service_that_is_gone(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    service.fake.lie("/revoke", error(500, "broken"), times=9)
    refused(mpx("globus", "logout"), 6, "what was kept here is removed")
    assert not state(service).exists()


def test_a_token_is_renewed_and_kept(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    kept = json.loads(state(service).read_text())
    (token,) = kept["tokens"].values()
    token["expires"] = 0
    state(service).write_text(json.dumps(kept))
    assert copy_x(service).code == 0
    renewed = json.loads(state(service).read_text())["tokens"]["transfer.api.globus.org"]
    assert renewed["access"] != token["access"] and renewed["refresh"] == token["refresh"]


def test_a_login_that_was_taken_back(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    service.fake.tokens.clear()
    service.fake.refresh_tokens.clear()
    refused(copy_x(service), 5, "mpx globus login")


def test_what_was_consented_to_stays(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID, "--https", ONE).code == 0
    assert log_in(service, "--data-access", OTHER).code == 0
    assert f"[*{DATA_ACCESS}]" in service.fake.consented and f"{ONE}/https" in service.fake.consented
    kept = json.loads(state(service).read_text())
    assert set(kept["tokens"]) == {"transfer.api.globus.org", ONE} and kept["data_access"] == [OTHER]


def test_a_wrong_code(service: Collections) -> None:
    refused_with = log_in(service, "--client-id", CLIENT_ID, code="a-code-that-is-wrong")
    assert refused_with.code == 5 and "a-code-that-is-wrong" not in refused_with.err
    assert not state(service).exists()


def test_no_client_is_shipped(service: Collections) -> None:
    refused(mpx("globus", "login", stdin=b"x"), 2, "--client-id ID, or GLOBUS_CLIENT_ID")


def test_a_file_that_others_may_read(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    state(service).chmod(0o644)
    refused(copy_x(service), 2, "chmod 600")


def test_a_file_that_is_no_login(service: Collections) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    state(service).write_text("{}")
    refused(copy_x(service), 2, "is no login of mpx")


@pytest.mark.parametrize(
    ("told", "command"),
    [
        ({"code": "ConsentRequired", "required_scopes": [DATA_ACCESS]}, f"--data-access {OTHER}"),
        (
            {
                "code": "PermissionDenied",
                "authorization_parameters": {
                    "session_message": "log in with your site",
                    "session_required_single_domain": ["site.example.org"],
                    "session_required_mfa": True,
                },
            },
            "--domain site.example.org --mfa",
        ),
        (
            {
                "code": "PermissionDenied",
                "authorization_parameters": {"session_required_identities": ["7f6d3f9e-one"]},
            },
            "--identity 7f6d3f9e-one",
        ),
        (
            {
                "code": "PermissionDenied",
                "authorization_parameters": {"session_required_policies": ["ab12", "cd34"]},
            },
            "--auth-policy ab12 --auth-policy cd34",
        ),
        (
            {"code": "PermissionDenied", "authorization_parameters": {"session_message": "log in anew"}},
            "--again",
        ),
    ],
)
def test_the_command_that_mends_it_is_named(
    service: Collections, told: dict[str, object], command: str
) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    service.fake.lie("/stat", Answer(403, {"message": "not so", **told}), times=9)
    refused(copy_x(service), 5, f"run: mpx globus login {command}")
    words = command.split()
    assert log_in(service, *words).code == 0


def test_what_a_session_is_to_be_is_in_the_url(service: Collections) -> None:
    ended = mpx(
        "globus",
        "login",
        "--client-id",
        CLIENT_ID,
        "--domain",
        "a.org",
        "--mfa",
        "--again",
        stdin=b"good-code",
    )
    assert "session_required_single_domain=a.org" in ended.err and "session_required_mfa=True" in ended.err
    assert "prompt=login" in ended.err and "code_challenge=" in ended.err


def test_the_secret_of_a_client_is_not_seen(collections: Collections) -> None:
    """Not even where the service sends it back."""
    collections.fake.lie("/v2/oauth2/token", error(400, "no", f"bad secret {SECRET}"), times=9)
    ended = copy_x(collections)
    assert ended.code == 5 and SECRET not in ended.err, ended.err


def test_the_names_that_globus_cli_has(service: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOBUS_CLI_CLIENT_ID", CLIENT_ID)
    monkeypatch.setenv("GLOBUS_CLI_CLIENT_SECRET", SECRET)
    assert copy_x(service).code == 0


def test_half_of_a_pair(service: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOBUS_CLIENT_SECRET", SECRET)
    refused(copy_x(service), 2, "GLOBUS_CLIENT_SECRET is set without GLOBUS_CLIENT_ID")


def test_without_the_sdk(service: Collections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/globus_sdk.py").write_text("raise ImportError\n")
    before = {"PYTHONPATH": f"{tmp_path}/hidden:{Path(__file__).parents[2]}"}
    for words in (("copy", f"{service.one_url}x", "x"), ("globus", "login"), ("list", service.one_url)):
        refused(mpx(*words, environment=before), 2, "pip install '.[globus]'")


def test_the_https_of_a_collection_needs_a_consent(service: Collections, tmp_path: Path) -> None:
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    service.fake.about[ONE] = {"https_server": "https://localhost:1"}
    make(service.one / "x", 1)
    refused(mpx("copy", f"{service.one_url}x", tmp_path / "x"), 5, f"run: mpx globus login --https {ONE}")
