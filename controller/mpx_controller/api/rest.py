"""REST: path sets, their streams, what the network looks like. `/openapi.json` describes all of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from mpx_controller.api.callers import LOCAL, Callers
from mpx_controller.api.messages import (
    Feedback,
    FlowsOut,
    NewPathSet,
    NewStreams,
    PathSetOut,
    Placed,
    Streams,
    flows_out,
    path_set_out,
)
from mpx_controller.api.metrics import metrics_text
from mpx_controller.api.xmlrpc import answered
from mpx_controller.controller import Caller, Controller
from mpx_controller.errors import Refused
from mpx_controller.path_sets.path_set import PathSet, StreamKey

ALIVE_S = 15.0  # between two signs of life of a stream of events
MOST_BODY = 65_536  # bytes of a request


def rest_of(controller: Controller, callers: Callers, version: str) -> FastAPI:
    """Return the application that answers for a controller."""
    app = FastAPI(title="mpx controller", version=version, docs_url=None, redoc_url=None)

    def told(known: PathSet) -> PathSetOut:
        return path_set_out(known, controller.lease_left_s(known), controller.sets.alive(known))

    def caller(request: Request) -> Caller:
        address = request.client.host if request.client else ""
        now_s = asyncio.get_running_loop().time()
        return callers.caller(address, request.headers.get("authorization"), now_s)

    async def asking(request: Request) -> Caller:
        return caller(request)

    Asking = Annotated[Caller, Depends(asking)]  # noqa: N806  a type

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, error.status)

    @app.middleware("http")
    async def bounded(request: Request, go_on: Any) -> Any:
        length = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not length.isdecimal() or int(length) > MOST_BODY:
            return JSONResponse(
                {"detail": f"a request has at most {MOST_BODY} bytes, and says how many"}, 413
            )
        return await go_on(request)

    @app.post("/path-sets", status_code=201)
    async def assign(asked: NewPathSet, who: Asking) -> PathSetOut:
        """Get a path set; it is yours until its lease ends."""
        made = await controller.assign(str(asked.source), str(asked.sink), asked.paths, who)
        return told(made)

    @app.get("/path-sets")
    async def path_sets(who: Asking) -> list[PathSetOut]:
        """Your path sets; on the controller's own host all there are."""
        every = controller.sets.all.values()
        mine = [each for each in every if who.owner in (LOCAL, each.owner)]
        return [told(each) for each in mine]

    @app.get("/path-sets/{number}")
    async def path_set(number: int, who: Asking) -> PathSetOut:
        """One of them."""
        known = controller.sets.get(number, who.owner)
        return told(known)

    @app.get("/path-sets/{number}/flows")
    async def flows(number: int, who: Asking) -> FlowsOut:
        """What switches hold for it, and have counted."""
        known, found, away = await controller.flows(number, None if who.owner == LOCAL else who.owner)
        return flows_out(known, found, away)

    @app.post("/path-sets/{number}/streams")
    async def place(number: int, asked: NewStreams, who: Asking) -> Placed:
        """Put streams on paths, before they connect."""
        keys = [StreamKey(port, asked.side) for port in asked.ports]
        return Placed(paths=await controller.place(number, keys, who.owner, asked.path))

    @app.post("/path-sets/{number}/streams/remove", status_code=204)
    async def remove(number: int, asked: Streams, who: Asking) -> None:
        """Streams have ended."""
        keys = [StreamKey(port, asked.side) for port in asked.ports]
        await controller.remove_streams(number, keys, who.owner)

    @app.post("/path-sets/{number}/renew")
    async def renew(number: int, who: Asking) -> PathSetOut:
        """Keep it for one more lease."""
        known = controller.renew(number, who.owner)
        return told(known)

    @app.post("/path-sets/{number}/feedback", status_code=204)
    async def feedback(number: int, asked: Feedback, who: Asking) -> None:
        """Tell what was found out about a path; predictions learn from it."""
        controller.sets.feedback(number, who.owner, asked.path, asked.streams, asked.rate_bps, asked.rtt_s)

    @app.delete("/path-sets/{number}", status_code=204)
    async def release(number: int, who: Asking) -> None:
        """Give it back."""
        await controller.release(number, who.owner)

    @app.get("/events")
    async def events(who: Asking) -> StreamingResponse:
        """What happens to your path sets, as it happens (server-sent events)."""
        return StreamingResponse(_events(controller, who.owner), media_type="text/event-stream")

    @app.get("/topology")
    async def topology(_: Asking) -> dict[str, Any]:
        """Switches, links and hosts, as they are seen now."""
        graph = controller.network.graph
        return {
            "switches": [
                {"id": f"{switch:x}", "connected": switch in controller.network.connected}
                for switch in sorted(graph.switches)
            ],
            "links": [
                {"from": str(ln.start), "to": str(ln.end), "rate_bps": ln.rate_bps, "delay_s": ln.delay_s}
                for ln in graph.links
            ],
            "edges": [str(port) for port in sorted(controller.network.edge_ports())],
            "hosts": [
                {"hardware": host.hardware, "port": str(host.port), "addresses": list(host.addresses)}
                for host in controller.network.hosts.all
            ],
        }

    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Whether it runs, and how many switches are connected."""
        return {"switches": len(controller.network.connected)}

    @app.get("/metrics")
    async def metrics(_: Asking) -> PlainTextResponse:
        """Counters, for Prometheus."""
        return PlainTextResponse(metrics_text(controller), media_type="text/plain; version=0.0.4")

    @app.post("/RPC2", include_in_schema=False)
    @app.post("/", include_in_schema=False)
    async def rpc(request: Request, who: Asking) -> Any:
        return await answered(await request.body(), controller, who)

    return app


async def _events(controller: Controller, owner: str) -> AsyncIterator[str]:
    queue = controller.listen()
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), ALIVE_S)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if owner in (LOCAL, event.owner):
                yield f"data: {json.dumps({'path_set': event.number, 'what': event.what})}\n\n"
    finally:
        controller.stop_listening(queue)
