"""Objects of S3 (s3://BUCKET/KEY), over the connections of `endpoints/web/`."""
