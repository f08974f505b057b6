"""REST: path sets, their streams, the network. `/openapi.json` describes all of it."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.security import HTTPBearer
from starlette.requests import ClientDisconnect

from mpx_controller.api.callers import Callers
from mpx_controller.api.event_stream import EVENTS, EventStream
from mpx_controller.api.messages import (
    ConnectionOut,
    Feedback,
    FlowsOut,
    NewPathSet,
    NewStreams,
    PathSetOut,
    Placed,
    Problem,
    Streams,
    ascii_text,
    connection_out,
    flows_out,
    path_set_out,
    what_is_wrong,
)
from mpx_controller.api.metrics import metrics_text
from mpx_controller.api.xmlrpc import answered
from mpx_controller.config import LOCAL
from mpx_controller.controller import Caller, Controller
from mpx_controller.errors import Refused
from mpx_controller.path_sets.path_set import PathSet, StreamKey

TOKENS = "Not needed on the controller's own host."
PROBLEMS = {
    400: "These cannot be the addresses of two hosts.",
    401: "No token, or an unknown one.",
    403: "It belongs to another owner, or you may not have paths of these hosts.",
    404: "There is no such path set, path or host.",
    409: "Another path set steers that port.",
    413: "The request is too large.",
    422: "The request is not well-formed.",
    429: "More requests, path sets or streams than you may have.",
    503: "There is no path at present, or a switch has not confirmed entries; try again.",
}

NOT_CONFIRMED: dict[int | str, dict[str, Any]] = {
    202: {"model": Problem, "description": "Released, though a switch has not confirmed; do not repeat."}
}

Number = Annotated[int, PathParameter(ge=1, le=2**31 - 1)]


def rest_of(controller: Controller, callers: Callers, version: str) -> FastAPI:
    """Return the application that answers for a controller."""
    app = FastAPI(
        title="mpx controller",
        version=version,
        docs_url=None,
        redoc_url=None,
        responses={code: {"model": Problem, "description": what} for code, what in PROBLEMS.items()},
        dependencies=[Depends(HTTPBearer(auto_error=False, description=TOKENS))],
    )

    def shown_set(known: PathSet) -> PathSetOut:
        alive, paths = controller.sets.alive(known), controller.sets.current_paths(known.number)
        most = controller.config.limits.streams
        return path_set_out(known, controller.lease_left_s(known), most, alive, paths)

    def whose(who: Caller) -> str | None:
        """Return whose path sets a caller may see and release; None: all."""
        return None if who.owner == LOCAL else who.owner

    def given_back(note: str | None) -> Response:
        return Response(status_code=204) if note is None else JSONResponse({"detail": ascii_text(note)}, 202)

    async def asking(request: Request) -> Caller:
        address = request.client.host if request.client else ""
        return callers.caller(address, request.headers.get("authorization"))

    Asking = Annotated[Caller, Depends(asking)]  # noqa: N806  a type

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return JSONResponse({"detail": ascii_text(str(error))}, error.status)

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)  # it is not read; without it the log would have a traceback

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": what_is_wrong(error)}, 422)

    @app.post("/path-sets", status_code=201)
    async def assign(asked: NewPathSet, who: Asking) -> PathSetOut:
        """Create a path set; it is yours until its lease ends."""
        made = await controller.assign(str(asked.source), str(asked.sink), asked.paths, who)
        return shown_set(made)

    @app.get("/path-sets")
    async def path_sets(who: Asking) -> list[PathSetOut]:
        """Your path sets; on the controller's own host all there are."""
        every = controller.sets.all.values()
        mine = [each for each in every if whose(who) in (None, each.owner)]
        return [shown_set(each) for each in mine]

    @app.get("/path-sets/{number}")
    async def path_set(number: Number, who: Asking) -> PathSetOut:
        """One of them."""
        known = controller.sets.get(number, whose(who))
        return shown_set(known)

    @app.get("/path-sets/{number}/flows")
    async def flows(number: Number, who: Asking) -> FlowsOut:
        """Its entries in switches, with their counters."""
        known, found, away = await controller.flows(number, whose(who))
        return flows_out(known, found, away)

    @app.post("/path-sets/{number}/streams")
    async def place(number: Number, asked: NewStreams, who: Asking) -> Placed:
        """Put streams on paths, before they connect."""
        keys = [StreamKey(port, asked.side) for port in asked.ports]
        return Placed(paths=await controller.place(number, keys, who.owner, asked.path))

    @app.post("/path-sets/{number}/streams/remove", status_code=204, responses=NOT_CONFIRMED)
    async def remove(number: Number, asked: Streams, who: Asking) -> Response:
        """Streams have ended."""
        keys = [StreamKey(port, asked.side) for port in asked.ports]
        return given_back(await controller.remove_streams(number, keys, who.owner))

    @app.post("/path-sets/{number}/renew")
    async def renew(number: Number, who: Asking) -> PathSetOut:
        """Renew its lease."""
        known = controller.renew(number, who.owner)
        return shown_set(known)

    @app.post("/path-sets/{number}/feedback", status_code=204)
    async def feedback(number: Number, asked: Feedback, who: Asking) -> None:
        """Report the best number of streams of a path; predictions learn from it."""
        controller.sets.feedback(number, who.owner, asked.path, asked.streams, asked.rate_bps, asked.rtt_s)

    @app.delete("/path-sets/{number}", status_code=204, responses=NOT_CONFIRMED)
    async def release(number: Number, who: Asking) -> Response:
        """Release it; on the controller's own host any, and its owner gets an event."""
        return given_back(await controller.release(number, whose(who)))

    @app.get("/events", response_class=StreamingResponse, responses={200: EVENTS})
    async def events(who: Asking) -> EventStream:
        """What happens to your path sets, as it happens (server-sent events)."""
        return EventStream(controller, who.owner)

    @app.get("/topology")
    async def topology(_: Asking) -> dict[str, Any]:
        """Switches, links and hosts at present."""
        graph = controller.network.graph
        return {
            "switches": [
                {
                    "id": f"{switch:x}",
                    "connected": switch in controller.network.connected,
                    "answers_s": controller.network.answers_s(switch),
                }
                for switch in sorted(graph.switches)
            ],
            "links": [
                {"from": str(ln.start), "to": str(ln.end), "rate_bps": ln.rate_bps, "delay_s": ln.delay_s}
                for ln in graph.links
            ],
            "edges": [str(port) for port in sorted(controller.network.edge_ports())],
            "unused": [str(port) for port in sorted(controller.network.unused_ports())],
            "hosts": [
                {"hardware": host.hardware, "port": str(host.port), "addresses": list(host.addresses)}
                for host in controller.network.hosts.all
            ],
        }

    @app.get("/mptcp")
    async def mptcp(who: Asking) -> list[ConnectionOut]:
        """Connections of Multipath TCP of your hosts, and the paths of their subflows."""
        known = controller.mptcp
        if known is None:
            return []
        subflows = known.subflows
        return [
            connection_out(each, subflows)
            for each in known.connections.all
            if who.may_ask_for(each.first.source) or who.may_ask_for(each.first.sink)
        ]

    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Whether it runs, and how many switches are connected."""
        return {"switches": len(controller.network.connected)}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(_: Asking) -> PlainTextResponse:
        """Counters, for Prometheus."""
        return PlainTextResponse(metrics_text(controller, callers), media_type="text/plain; version=0.0.4")

    @app.post("/RPC2", include_in_schema=False)
    @app.post("/", include_in_schema=False)
    async def rpc(request: Request, who: Asking) -> Any:
        return await answered(await request.body(), controller, who)

    return app
