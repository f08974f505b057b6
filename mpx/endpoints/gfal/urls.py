"""URLs as gfal2 takes them: percent-encoded, with a scheme that it knows. Pure."""

from urllib.parse import quote

SERVICE = "?SFN="  # of SRM, between where the service is and the name of a file
_KEPT = "/~"


def url_of(server: str, name: str) -> str:
    """Return the URL of a name at a server, `davs://host:port`. A name that is relative is so to home."""
    path = name if name.startswith("/") else f"/~/{name}"
    before, service, after = path.partition(SERVICE)
    if service and server.startswith("srm://"):
        return f"{server}{_encoded(before)}{service}{_encoded(after)}"
    slash = "/" if server.startswith("root") else ""  # as XRootD's own tools have it
    return f"{server}{slash}{_encoded(path)}"


def folder_url(server: str, name: str) -> str:
    """Return the URL of a folder: some web servers take others for those of files."""
    url = url_of(server, name)
    return url if url.endswith("/") or server.startswith("srm://") else f"{url}/"


def _encoded(path: str) -> str:
    return quote(path, safe=_KEPT, errors="surrogateescape")
