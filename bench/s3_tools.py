"""SeaweedFS on a host of a lab, and the commands of the tools that copy to and from it as people run them."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import web_tools
from install_peers import find_peer
from mpx_lab.lab_host import LabHost

MPX, RCLONE, RCLONE_16, RCLONE_32, AWS, AWS_16 = (
    "mpx",
    "rclone",
    "rclone, 16 streams",
    "rclone --transfers 32",
    "aws",
    "aws, 16 requests",
)
BUCKET = "bench"
_PORT, _REGION, _KEY_ID, _SECRET = 8333, "us-east-1", "benchkey", "benchsecret"
# A simulated machine maps each page by itself, and its host permits a process 65,530 maps.
_SMALL_HEAP = {"GOGC": "40"}
_TUNED = ("--s3-upload-concurrency", "16", "--s3-chunk-size", "16M", "--multi-thread-streams", "16")


@contextlib.contextmanager
def seaweedfs(host: LabHost, folder: Path) -> Iterator[str]:
    """Run SeaweedFS with its S3 gateway and an empty bucket on a host; yields the URL of the server."""
    state = folder / "weed"
    (state / "data").mkdir(parents=True)
    user = {"accessKey": _KEY_ID, "secretKey": _SECRET}
    keys = state / "keys.json"
    keys.write_text(json.dumps({"identities": [{"name": "u", "credentials": [user], "actions": ["Admin"]}]}))
    address = host.addresses[0]
    words = [
        find_peer("weed"),
        "server",
        f"-dir={state}/data",
        "-s3",
        f"-s3.config={keys}",
        f"-s3.port={_PORT}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-ip={address}",
        f"-ip.bind={address}",
        "-master.volumeSizeLimitMB=1024",
        "-master.telemetry=false",
        "-volume.max=0",
    ]
    url = f"http://{address}:{_PORT}"
    variables = {**web_tools.environment(), **_SMALL_HEAP}
    with web_tools.serving(host, words, url, env=variables, cwd=state):
        first = ["copyto", str(keys), f":s3:{BUCKET}/first"]  # which makes a bucket, and room on disk
        host.run([*rclone(state), *first], env=environment(url, state), check=True)
        yield url


def installed(tools: Sequence[str]) -> list[str]:
    """Return those tools that are there, and print a line for each other one."""
    found = []
    for tool in tools:
        program = tool.split(",")[0].split()[0]
        if tool == MPX or _starts(program):
            found.append(tool)
        else:
            print(f"skipped: {tool}: {program} is not installed, or does not start")
    return found


def _starts(program: str) -> bool:
    path = shutil.which(program)
    asked = [path or "", "version" if program == "rclone" else "--version"]
    return path is not None and subprocess.run(asked, capture_output=True, check=False).returncode == 0


def file(tool: str, source: str, target: str, state: Path) -> list[str]:
    """Return the command that copies one file; what is in the bucket is `:NAME`."""
    if tool == MPX:
        return [*web_tools.mpx(state), *_ends("s3://", source, target)]
    if tool in (AWS, AWS_16):
        return ["aws", "s3", "cp", "--only-show-errors", *_ends("s3://", source, target)]
    more = _TUNED if tool == RCLONE_16 else ()
    return [*rclone(state), "copyto", *more, *_ends(":s3:", source, target)]


def tree(tool: str, source: str, target: str, state: Path) -> list[str]:
    """Return the command that copies a tree; what is in the bucket is `:NAME`."""
    if tool == MPX:
        return [*web_tools.mpx(state), "-r", *_ends("s3://", source, target)]
    more = ("--transfers", "32", "--checkers", "32") if tool == RCLONE_32 else ()
    return [*rclone(state), "copy", *more, *_ends(":s3:", source, target)]


def _ends(scheme: str, *names: str) -> list[str]:
    return [f"{scheme}{BUCKET}/{name[1:]}" if name[0] == ":" else name for name in names]


def rclone(state: Path) -> list[str]:
    """Return the beginning of a command of rclone; `state`: a folder for what it keeps."""
    return ["rclone", "--config", f"{state}/rclone.conf", "--s3-provider", "Other", "--s3-env-auth"]


def environment(url: str, state: Path, tool: str = "") -> Mapping[str, str]:
    """Return the environment of a tool, with the settings of the AWS tools; `state`: a folder for them."""
    settings = state / f"aws-{tool == AWS_16}"
    requests = "s3 =\n  max_concurrent_requests = 16\n" if tool == AWS_16 else ""
    settings.write_text(f"[default]\nregion = {_REGION}\n{requests}")
    inherited = web_tools.environment().items()
    return {
        **{name: value for name, value in inherited if not name.startswith("AWS_")},
        "AWS_ACCESS_KEY_ID": _KEY_ID,
        "AWS_SECRET_ACCESS_KEY": _SECRET,
        "AWS_REGION": _REGION,
        "AWS_ENDPOINT_URL": url,
        "RCLONE_S3_ENDPOINT": url,
        "RCLONE_S3_REGION": _REGION,
        "AWS_CONFIG_FILE": str(settings),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
