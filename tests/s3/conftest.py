"""Servers of S3, each started once, and a bucket of its own for each test."""

from collections.abc import Iterator
from typing import Any

import pytest
from s3.buckets import Bucket, buckets_of
from web.servers.moto import MotoSite, moto_site
from web.servers.s3_site import S3Site
from web.servers.seaweedfs import seaweedfs_site


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoSite]:
    with moto_site(tmp_path_factory.mktemp("moto")) as site:
        yield site


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Site]:
    with seaweedfs_site(tmp_path_factory.mktemp("seaweedfs")) as site:
        yield site


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
