"""What S3 answers in XML, and the entries of a listing."""

from mpx.endpoints.s3.answer import S3Answer, S3AnswerError
from mpx.endpoints.s3.keys import child_of_key, decoded_key
from mpx.endpoints.s3.refusals import S3Error
from mpx.endpoints.web.names import HrefError

SEEDS = [
    b'<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><KeyCount>2</KeyCount>'
    b"<EncodingType>url</EncodingType><Contents><Key>f/a+b%2B</Key><ETag>&quot;0&quot;</ETag><Size>5</Size></Contents>"
    b"<Contents><Key>f/..</Key></Contents><CommonPrefixes><Prefix>f/g/</Prefix></CommonPrefixes></ListBucketResult>",
    b"  \n<Error><Code>NoSuchUpload</Code><Message>\xff gone</Message><Region>eu-west-1</Region></Error>",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]><R>&a;</R>",
]
ALLOWED = ()


def parse(data: bytes) -> None:
    """Read an answer; what it lists are names, or errors."""
    S3Error(data)
    try:
        answer = S3Answer(data)
    except S3AnswerError as error:
        assert len(str(error)) < 2000
        return
    assert answer.root
    for _, fields in answer.records:
        key = decoded_key(fields.get("Key") or fields.get("Prefix", ""))
        try:
            name = child_of_key(key, "f/")
        except HrefError as error:
            assert len(str(error)) < 2000
            continue
        assert name is None or (name not in ("", ".", "..") and not {"/", "\0"} & set(name))
