"""Refusals of requests; each has the HTTP status of its answer.

Refused (400)
├── NotYours (403)      it belongs to another owner
├── NotThere (404)      no such path set, host or stream
├── Taken (409)         another path set has that port
├── TooMany (429)       a quota is used up
└── NoPath (503)         no path is there now, or a switch has not confirmed
"""


class Refused(Exception):
    """A request that cannot be granted; the message says why and what to do."""

    status = 400


class NotYours(Refused):
    """The path set belongs to another owner."""

    status = 403


class NotThere(Refused):
    """Nothing of that name or number is known."""

    status = 404


class Taken(Refused):
    """Another path set steers that port already."""

    status = 409


class TooMany(Refused):
    """A quota is used up."""

    status = 429


class NoPath(Refused):
    """There is no path at the moment, or a switch does not confirm entries."""

    status = 503
