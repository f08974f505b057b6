"""Credentials, regions, servers and buckets, as the AWS tools take them; and what nobody is shown."""

import json
import os
import sys
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from s3.buckets import Bucket, buckets_of
from s3.scripted_s3 import ScriptedS3, scripted_s3
from sites import make
from web.servers.nginx import nginx_site
from web.servers.s3_site import KEY_ID, SECRET, S3Site

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.endpoint import S3Endpoint
from mpx.endpoints.s3.options import S3Options
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import Part
from mpx.errors import Interrupted
from mpx.location import Location
from mpx.probing.target import parse_target

TOKEN = "a-session-token-that-nobody-prints"


@pytest.fixture
def checked(seaweedfs: S3Site, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of a server that checks signatures."""
    bucket = buckets_of(seaweedfs, monkeypatch)
    bucket.put("key", b"data")
    return bucket


def test_wrong_credentials(checked: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused(
        mpx("copy", f"{checked.url}key", tmp_path / "x"), 5, "SignatureDoesNotMatch", "check the credentials"
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    refused(mpx("copy", make(tmp_path / "y"), f"{checked.url}key"), 5, "InvalidAccessKeyId")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    refused(mpx("list", checked.url), 5, "no credentials", "aws configure", "--no-sign-request")


def test_without_signing(seaweedfs: S3Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    public = buckets_of(seaweedfs, monkeypatch, "public")
    public.put("key", b"data")
    private = buckets_of(seaweedfs, monkeypatch)
    private.put("key", b"data")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    copied(mpx("copy", f"{public.url}key", tmp_path / "key", "--no-sign-request"))
    assert (tmp_path / "key").read_bytes() == b"data"
    ended = mpx("copy", f"{private.url}key", tmp_path / "x", "--no-sign-request")
    refused(ended, 3, "AccessDenied", "--profile", "leave out --no-sign-request")
    assert "open to all" not in ended.err


def test_a_bucket_that_is_not_there(any_bucket: Bucket, tmp_path: Path) -> None:
    for words in (("list", "s3://nobody-has-it/"), ("copy", "s3://nobody-has-it/x", tmp_path / "x")):
        refused(mpx(*words), 3, "NoSuchBucket", "--endpoint-url")
    refused(mpx("copy", make(tmp_path / "y"), "s3://nobody-has-it/x"), 4, "NoSuchBucket")
    refused(mpx("copy", f"{any_bucket.url}missing", tmp_path / "x"), 3, "does not exist")


def test_a_profile(checked: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(
        f"[profile one]\nregion = us-east-1\nendpoint_url = {checked.site.url}\n"
        f"aws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n"
    )
    copied(mpx("copy", f"{checked.url}key", tmp_path / "key", "--profile", "one"))
    assert (tmp_path / "key").read_bytes() == b"data"
    monkeypatch.setenv("AWS_PROFILE", "one")
    copied(mpx("copy", f"{checked.url}key", tmp_path / "again"))
    refused(mpx("list", checked.url, "--profile", "two"), 2, "two", "--profile")


def test_credentials_are_renewed(checked: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of a program that end soon; it is asked again while the copy runs."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    asked, program = tmp_path / "asked", tmp_path / "program.py"
    program.write_text(
        "import datetime, json, pathlib\n"
        f"with pathlib.Path({str(asked)!r}).open('a') as log: log.write('x')\n"
        "ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=1)\n"
        f"print(json.dumps(dict(Version=1, AccessKeyId={KEY_ID!r}, SecretAccessKey={SECRET!r},"
        "Expiration=ends.isoformat())))\n"
    )
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(
        f"[default]\ncredential_process = {sys.executable} {program}\n"
    )
    copied(mpx("copy", f"{checked.url}key", tmp_path / "key"))
    assert len(asked.read_text()) > 1


def test_a_program_that_is_not_there(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    Path(os.environ["AWS_CONFIG_FILE"]).write_text("[default]\ncredential_process = /none/program\n")
    refused(mpx("list", bucket.url), 2, "the settings for S3 cannot be used", "/none/program")


SSO = "sso_start_url = https://x.example/\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\n"
ROLE = "role_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n[profile base]\n"
KEYS = "aws_access_key_id = A\naws_secret_access_key = b\n"


@pytest.mark.parametrize(
    ("settings", "code", "why"),
    [
        (SSO, 5, "run aws sso login"),
        (f"credential_process = echo {SECRET}\n", 2, "what credential_process prints is not JSON"),
        ("credential_process = echo []\n", 2, "the settings for S3 cannot be used"),
        ("credential_process =\n", 2, "the settings for S3 cannot be used"),
        ("s3 = what\n", 2, "the settings for S3 cannot be used"),
        ("endpoint_url = http://127.0.0.1:1/\u65e5/a b\n", 2, "is not the URL of a server"),
        (
            f"mfa_serial = arn:aws:iam::1:mfa/u\n{ROLE}{KEYS}",
            5,
            "nobody is there to type it",
        ),
    ],
    ids=["sso", "program", "other program", "no program", "no section", "endpoint", "asked for a code"],
)
def test_credentials_that_cannot_be_had(
    scripted: ScriptedS3, monkeypatch: pytest.MonkeyPatch, settings: str, code: int, why: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(f"[default]\n{settings}")
    home = Path(os.environ["AWS_CONFIG_FILE"]).parent
    done = mpx("list", "s3://bucket/", environment={"HOME": str(home)})
    assert done.code == code and why in done.err, done
    assert SECRET not in done.err and "Traceback" not in done.err


def test_a_role_that_is_refused(scripted: ScriptedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the service that hands out credentials for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(f"[default]\n{ROLE}{KEYS}")
    with scripted_s3() as service:
        denied = "<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not for you</Message></Error>"
        service.instead = lambda _: (403, {}, f"<ErrorResponse>{denied}</ErrorResponse>".encode())
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", service.url)
        refused(mpx("list", "s3://bucket/"), 5, "cannot be had", "AccessDenied", "not for you")
    assert not scripted.asked


def test_what_hands_out_credentials_is_asked_once(
    scripted: ScriptedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloud's service for its hosts, say: where it is not reached, each time takes seconds."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    with scripted_s3() as service:
        service.instead = lambda _: (404, {}, b"")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.url)
        refused(mpx("list", "s3://bucket/"), 5, "there are no credentials for S3")
        assert sum(asked.target.endswith("/api/token") for asked in service.asked) == 1


def test_credentials_with_a_line_end_in_them(scripted: ScriptedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file that was edited elsewhere has them: they would end a header."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "\u65e5")  # which is not sent
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"):
        with monkeypatch.context() as changed:
            changed.setenv(name, f"{SECRET}\r\nX-Other: 1")
            done = mpx("list", "s3://bucket/")
        refused(done, 5, "a line end or another unfit character", name)
        assert SECRET not in done.err
    assert not scripted.asked


def test_a_bucket_in_the_host_name(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No resolver knows that host here, so that moto is spoken to as its own proxy."""
    Path(os.environ["AWS_CONFIG_FILE"]).write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{bucket.site.port}")
    source = make(tmp_path / "source", (16 << 20) + 1)
    copied(mpx("copy", source, f"{bucket.url}a/key"))
    copied(mpx("copy", f"{bucket.url}a/key", tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == source.read_bytes() == bucket.get("a/key")
    targets = [target for _, target, _ in bucket.moto.requests() if bucket.name in target]
    assert any(target.startswith(f"http://{bucket.name}.localhost:") for target in targets)


@pytest.mark.parametrize(
    ("bucket", "options", "url"),
    [
        ("data", S3Options(region="eu-west-1"), "https://data.s3.eu-west-1.amazonaws.com/a%20b"),
        ("data", S3Options(region="cn-north-1"), "https://data.s3.cn-north-1.amazonaws.com.cn/a%20b"),
        ("da.ta", S3Options(region="eu-west-1"), "https://s3.eu-west-1.amazonaws.com/da.ta/a%20b"),
        ("Old_One", S3Options(region="eu-west-1"), "https://s3.eu-west-1.amazonaws.com/Old_One/a%20b"),
        (
            "data",
            S3Options(endpoint_url="https://s3.example.org:9000"),
            "https://s3.example.org:9000/data/a%20b",
        ),
        ("data", S3Options(endpoint_url="http://[::1]:9/base/"), "http://[::1]:9/base/data/a%20b"),
    ],
)
def test_where_a_bucket_is(bucket: str, options: S3Options, url: str) -> None:
    access = S3Access(Location("s3", "/", bucket), WebOptions(), options)
    assert str(access.url_of("/a b")) == url


ACCELERATED = "s3 =\n  use_accelerate_endpoint = true\n"


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ("", "data.s3.us-east-1.amazonaws.com"),
        ("use_fips_endpoint = true\n", "data.s3-fips.us-east-1.amazonaws.com"),
        ("use_dualstack_endpoint = true\n", "data.s3.dualstack.us-east-1.amazonaws.com"),
        (ACCELERATED, "data.s3-accelerate.amazonaws.com"),
        (f"use_dualstack_endpoint = true\n{ACCELERATED}", "data.s3-accelerate.dualstack.amazonaws.com"),
        (f"endpoint_url = https://s3.example.org\n{ACCELERATED}", "s3.example.org"),
    ],
)
def test_which_servers_of_aws_are_used(settings: str, host: str) -> None:
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(f"[default]\nregion = us-east-1\n{settings}")
    access = S3Access(Location("s3", "/", "data"), WebOptions(), S3Options())
    assert access.origin.host == host
    assert access.server_url == ("https://s3.example.org" if host == "s3.example.org" else "")


def test_a_proxy_that_is_not_there(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told from the server, without its password."""
    monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:1")
    done = mpx("list", bucket.url)
    refused(done, 6, "127.0.0.1:1", f"the proxy that the environment names for localhost:{bucket.site.port}")
    assert SECRET not in done.err


def test_aws_itself_whatever_the_settings_say(scripted: ScriptedS3) -> None:
    """As for an upload that was begun there, when the environment leads elsewhere by now."""
    at = Location("s3", "/", "data")
    assert S3Access(at, WebOptions(), S3Options()).server_url == scripted.url
    access = S3Access(at, WebOptions(), S3Options(endpoint_url=""))
    assert (access.origin.host, access.server_url) == ("data.s3.us-east-1.amazonaws.com", "")


def test_cas_that_the_settings_name(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/none")
    refused(mpx("list", bucket.url), 2, "/none, named by AWS_CA_BUNDLE")


def test_where_a_bucket_is_probed(scripted: ScriptedS3) -> None:
    """By handshakes with its server: none is asked for anything, and no credentials are needed."""
    assert parse_target("s3://data", "eu-west-1", "https://s3.eu-west-1.amazonaws.com") == (
        "data.s3.eu-west-1.amazonaws.com",
        443,
    )
    done = mpx("probe", "S3://bucket/key", "--window", "1s", environment={"AWS_ACCESS_KEY_ID": ""})
    assert done.code == 0 and f"at {scripted.url.removeprefix('http://')}" in done.out, done
    done = mpx("probe", "s3://bucket", "--window", "1s", "--endpoint-url", "http://127.0.0.1:1")
    assert done.code == 0 and "at 127.0.0.1:1" in done.out and "its resets are timed" in done.out, done
    assert not scripted.asked
    refused(mpx("probe", "https://127.0.0.1:1", "--region", "x"), 2, "--region is for s3://")


def test_checksums_are_not_asked_for_once_the_copy_is_stopped() -> None:
    """Else there would be fewer than files, and who compares them would fail by that."""
    at = Location("s3", "/", "data")
    endpoint = S3Endpoint(at, S3Access(at, WebOptions(), S3Options(region="eu-west-1")), writing=False)
    with pytest.raises(Interrupted):
        endpoint.checksums("md5", [Part("/key", 0, 1, is_whole=True)], lambda: True)


def test_secrets_are_not_shown(
    seaweedfs: S3Site, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SeaweedFS refuses the token, and moto takes it."""
    bucket.put("key")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("MPX_DEBUG", "1")
    make(tmp_path / "large", (16 << 20) + 1)
    said = ""
    for name, words in enumerate(
        [
            ("copy", "-v", tmp_path / "large", f"{bucket.url}large"),
            ("copy", "-v", f"{bucket.url}key", tmp_path / "key"),
            ("copy", "-v", f"{bucket.url}missing", tmp_path / "missing"),
            ("copy", "-v", f"{bucket.url}key", "/proc/none/x"),
        ]
    ):
        done = mpx(*words, "--report", tmp_path / f"{name}.json")
        said += done.out + done.err + (tmp_path / f"{name}.json").read_text()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", seaweedfs.url)
    done = mpx("copy", "-v", f"{bucket.url}key", tmp_path / "x", "--report", tmp_path / "wrong.json")
    said += done.out + done.err + (tmp_path / "wrong.json").read_text()
    assert json.loads((tmp_path / "0.json").read_text())["files"]["total"] == 1
    for secret in (SECRET, "another-secret", TOKEN, "Signature=", "AWS4-HMAC"):
        assert secret not in said


def test_without_botocore(tmp_path: Path) -> None:
    (tmp_path / "botocore").mkdir()
    (tmp_path / "botocore/__init__.py").write_text("raise ImportError('No module named botocore')")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = mpx("list", "s3://bucket/", environment={"PYTHONPATH": paths})
    refused(done, 2, "s3:// needs botocore", "pip install '.[s3]'")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("s3://Bad_bucket!/x", "y"), "not the name of a bucket"),
        (("s3:///x", "y"), "not the name of a bucket"),
        (("x", "s3://arn:aws:s3:us-east-1:1:accesspoint/ap/x"), "the alias of the access point"),
        (("x", "s3://data--use1-az4--x-s3/x", "--endpoint-url", "https://s3.amazonaws.com"), "S3 Express"),
        (("x", "s3://bucket/x", "--in-place"), "--in-place is not possible here"),
        (("x", "s3://bucket/x", "--endpoint-url", "localhost"), "endpoint"),
        (("x", "s3://bucket/x", "--endpoint-url", "ftp://localhost"), "--endpoint-url"),
        (("x", "y", "--profile", "z"), "--profile is not possible here"),
        (("x", "https://host/y", "--region", "z"), "--region is not possible here: it is for s3://"),
        (("x", "s3://bucket/x", "--token-file", "z"), "--token-file is not possible here"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    make(tmp_path / "x")
    refused(mpx("copy", *words, folder=tmp_path), 2, why)


def test_s3_at_an_endpoint_of_the_other_scheme(bucket: Bucket, tmp_path: Path) -> None:
    clear = f"https://localhost:{bucket.site.port}"
    ended = mpx("list", bucket.url, "--endpoint-url", clear)
    refused(ended, 5, "does not answer in TLS", "write --endpoint-url http://")
    (tmp_path / "served").mkdir()
    with nginx_site(tmp_path / "served", tls=True) as secure:
        ended = mpx("list", bucket.url, "--endpoint-url", f"http://localhost:{secure.port}")
    refused(ended, 5, "speaks TLS", "write --endpoint-url https://")
