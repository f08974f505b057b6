"""Uploads to S3: as many workers as streams are wanted; several share a large file."""

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.copy_worker import S3CopyWorker
from mpx.endpoints.s3.part_scheduler import PartScheduler
from mpx.endpoints.s3.upload_worker import S3UploadWorker
from mpx.endpoints.web.carrier import WebUploadCarrier
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext


class S3UploadCarrier(WebUploadCarrier):
    """Local files to a bucket; with `bucket` objects of that one, which the server copies."""

    def __init__(self, access: S3Access, context: CarrierContext, bucket: str = "") -> None:
        self._s3, self._bucket = access, bucket
        self._parts = PartScheduler(context)
        super().__init__(access, context)

    def _worker(self, number: int, path: str) -> WebWorker:
        context, parts = self._context, self._parts
        if self._bucket:
            return S3CopyWorker(number, path, self._s3, context, parts, self._bucket)
        return S3UploadWorker(number, path, self._s3, context, parts)
