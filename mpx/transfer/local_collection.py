"""This host as a collection of Globus (`--globus-local`): its files, by their names there."""

from collections.abc import Sequence

from mpx.endpoints.schemes import capabilities_of
from mpx.errors import UsageError
from mpx.location import Location, parse_collection
from mpx.options import CopyOptions
from mpx.text import named

GIVE = "give --globus-local COLLECTION, or COLLECTION=FOLDER where it shows FOLDER of this host as its root"


def in_collection(
    sources: Sequence[Location], destination: Location, options: CopyOptions
) -> tuple[Sequence[Location], Location]:
    """Return the places of a copy, those of this host as places of the collection that has them.

    Raises UsageError where the other end is not a collection, or a name is not in FOLDER.
    """
    if options.globus_local is None:
        return sources, destination
    text, equals, folder = options.globus_local.partition("=")
    try:
        collection = parse_collection(text)
    except UsageError as error:
        raise UsageError(f"--globus-local: {error}") from None
    if equals and not folder.startswith("/"):
        raise UsageError(f"--globus-local: {named(folder)} is not a folder named from the root; {GIVE}")
    here = [capabilities_of(place).is_here for place in (*sources, destination)]
    others = [place for place, is_here in zip((*sources, destination), here, strict=True) if not is_here]
    if all(here) or not any(here) or not all(_is_of_service(place) for place in others):
        raise UsageError(
            "--globus-local is not possible here: it is for copies between this host and globus://"
        )

    def placed(place: Location, is_here: bool) -> Location:
        return Location("globus", _seen_as(place.name, folder.rstrip("/")), collection) if is_here else place

    places = [placed(*each) for each in zip((*sources, destination), here, strict=True)]
    return places[:-1], places[-1]


def _is_of_service(place: Location) -> bool:
    third_party = capabilities_of(place).third_party
    return third_party is not None and third_party.is_by_service


def _seen_as(name: str, folder: str) -> str:
    """Return the name by which a collection has a file of this host, where `folder` is its root."""
    if name != folder and not name.startswith(f"{folder}/"):
        raise UsageError(f"{named(name)} is not in {named(folder)}, which is what the collection has; {GIVE}")
    return name.removeprefix(folder) or "/"
