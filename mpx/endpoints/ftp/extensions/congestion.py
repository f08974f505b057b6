"""What a server that sends can be told of congestion control: an extension of ours (docs/extensions.md)."""

from collections.abc import Callable, Sequence

from mpx.errors import UsageError

FEATURE = "MPX-CONGESTION"  # in the reply to FEAT, with the names that it may use


def check_server_congestion(name: str, congestions: Sequence[str]) -> None:
    """Raise UsageError unless a server that sends can be told to use the congestion control `name`."""
    if not congestions:
        raise UsageError(
            f"congestion control {name!r} is not available: the server sends, so its kernel chooses; set it "
            "there with: ip route change ... congctl NAME"
        )
    if name not in congestions:
        raise UsageError(
            f"congestion control {name!r} is not available: the server, which sends, may use only "
            f"{', '.join(congestions)}; there as root: mpx serve --congestion {name} "
            f"(after modprobe tcp_{name}, if it has that), or for all users of it "
            f'sysctl -w net.ipv4.tcp_allowed_congestion_control="{" ".join(congestions)} {name}"'
        )


def why_not_at_server(congestions: Sequence[str]) -> Callable[[str], str]:
    """Return what says why a server may not send with a congestion control, an empty text where it may."""

    def why_not(name: str) -> str:
        try:
            check_server_congestion(name, congestions)
        except UsageError as error:
            return str(error)
        return ""

    return why_not
