"""A bucket of a server under test, as the tests see it."""

import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from web.servers.moto import MotoSite
from web.servers.s3_site import S3Site


@dataclass
class Bucket:
    """`client`: of botocore, to look at what is there."""

    name: str
    site: S3Site
    client: Any = field(repr=False)

    @property
    def url(self) -> str:
        return f"s3://{self.name}/"

    @property
    def moto(self) -> MotoSite:
        assert isinstance(self.site, MotoSite)
        return self.site

    def put(self, key: str, data: bytes = b"x") -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def put_in_parts(self, key: str, parts: list[bytes]) -> None:
        names = {"Bucket": self.name, "Key": key}
        names["UploadId"] = self.client.create_multipart_upload(**names)["UploadId"]
        stored = []
        for number, data in enumerate(parts, 1):
            etag = self.client.upload_part(**names, PartNumber=number, Body=data)["ETag"]
            stored.append({"PartNumber": number, "ETag": etag})
        self.client.complete_multipart_upload(**names, MultipartUpload={"Parts": stored})

    def get(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def keys(self) -> set[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {each["Key"] for page in pages for each in page.get("Contents", [])}

    def uploads(self) -> list[dict[str, Any]]:
        """Those in parts that are neither completed nor aborted."""
        return list(self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", []))

    def parts(self) -> list[int]:
        """The numbers of the parts of the only upload that there is; none where there is none."""
        for each in self.uploads():
            found = self.client.list_parts(Bucket=self.name, Key=each["Key"], UploadId=each["UploadId"])
            return [part["PartNumber"] for part in found.get("Parts", [])]
        return []

    def abort_all(self) -> None:
        for each in self.uploads():
            self.client.abort_multipart_upload(Bucket=self.name, Key=each["Key"], UploadId=each["UploadId"])


def buckets_of(site: S3Site, monkeypatch: pytest.MonkeyPatch, name: str = "") -> Bucket:
    """Make a bucket, and have its user in the environment."""
    for variable, value in site.environment.items():
        monkeypatch.setenv(variable, value)
    made = Bucket(name or f"b{uuid.uuid4().hex[:12]}", site, site.client)
    made.client.create_bucket(Bucket=made.name)
    return made
