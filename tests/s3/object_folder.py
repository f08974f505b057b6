"""A bucket as the folder that tests look into: what they need of pathlib.Path, for objects."""

from collections.abc import Iterator
from dataclasses import dataclass

from s3.buckets import Bucket


@dataclass(frozen=True)
class ObjectPath:
    """An object, or all whose keys begin alike; `key`: empty for the bucket."""

    bucket: Bucket
    key: str = ""

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self.bucket, f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def write_bytes(self, data: bytes) -> None:
        self.bucket.put(self.key, data)

    def read_bytes(self) -> bytes:
        return self.bucket.get(self.key)

    def exists(self) -> bool:
        return self.key in self._keys()

    def mkdir(self) -> None:
        """Make what consoles make: an empty object whose key ends with a slash."""
        self.bucket.put(f"{self.key}/", b"")

    def iterdir(self) -> Iterator["ObjectPath"]:
        before = f"{self.key}/" if self.key else ""
        keys = {key.removeprefix(before) for key in self._keys() if key.startswith(before)}
        return (self / name for name in sorted({key.partition("/")[0] for key in keys} - {""}))

    def _keys(self) -> set[str]:
        return self.bucket.keys()
