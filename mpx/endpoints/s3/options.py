"""What the user says of S3, in the words of the AWS command line."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class S3Options:
    """None: as the environment and ~/.aws say."""

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None  # empty: AWS, whatever the settings say
    signs: bool = True
    payer: str | None = None  # who pays, as the bucket wants to be told: "requester"
    replaces_unseen: bool = False  # objects of which nobody may tell us whether they are there
