"""A bucket of its own for each test, at the servers of S3 that all tests share; and scripted servers."""

from collections.abc import Iterator
from typing import Any

import pytest
from s3.buckets import Bucket, buckets_of
from s3.lying_s3 import KEY, LEAST_BYTES, PART_BYTES, SMALL, WHOLE_BYTES
from s3.scripted_s3 import ScriptedS3, scripted_s3
from web.servers.moto import MotoSite

from mpx.endpoints.s3 import beginning, copy_worker, passed_parts, streaming, upload_worker


@pytest.fixture(autouse=True)
def no_settings_of_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Keep the settings of whoever runs the tests out of them."""
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bucket(moto: MotoSite, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of moto, whose user is in the environment."""
    return buckets_of(moto, monkeypatch)


@pytest.fixture(params=["moto", "seaweedfs"])
def any_bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of each server."""
    return buckets_of(request.getfixturevalue(request.param), monkeypatch)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedS3]:
    """A server in memory that a test may have answer otherwise; its user is in the environment."""
    with scripted_s3() as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHETEST")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-nobody-prints")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield made


@pytest.fixture
def server(scripted: ScriptedS3) -> ScriptedS3:
    """The server, with an object."""
    scripted.objects[KEY] = SMALL
    return scripted


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of little more than nothing sent in parts."""
    for module in (upload_worker, passed_parts, streaming):
        monkeypatch.setattr(module, "WHOLE_BYTES", WHOLE_BYTES)
    for module in (beginning, upload_worker, copy_worker, passed_parts):
        monkeypatch.setattr(module, "part_bytes_of", lambda _: PART_BYTES)


@pytest.fixture
def least_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have parts as small as real servers take them."""
    monkeypatch.setattr(upload_worker, "WHOLE_BYTES", LEAST_BYTES)
    for module in (beginning, upload_worker, copy_worker, passed_parts):
        monkeypatch.setattr(module, "part_bytes_of", lambda _: LEAST_BYTES)
    monkeypatch.setattr(copy_worker, "MOST_COPIED_BYTES", LEAST_BYTES)
    monkeypatch.setattr(copy_worker, "COPIED_PART_BYTES", LEAST_BYTES)


@pytest.fixture
def before(any_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedS3]:
    """Stands before the server of `any_bucket`: it passes on what a test does not have answered otherwise."""
    with scripted_s3(behind=any_bucket.site) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
        yield made
