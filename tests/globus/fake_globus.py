"""A service that speaks the REST of Globus Transfer and Auth, with folders as collections; it lies on demand.

Written from the SDK's own examples of answers; the live service was not asked.
"""

import contextlib
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from globus.fake_task import FakeTask

ONE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CLIENT_ID, SECRET = "33333333-3333-4333-8333-333333333333", "the-secret-of-a-client"
TRANSFER = "transfer.api.globus.org"


@dataclass
class Answer:
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    then: Callable[[], None] | None = None  # instead of an answer
    writes: Callable[[BinaryIO], None] | None = None  # an answer of its own


@dataclass
class Lie:
    """What is answered to requests whose line holds `words`, so often."""

    words: str
    answer: Callable[["Request"], Answer | None]
    times: int = 1


@dataclass
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    token: str

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


def error(status: int, code: str, text: str = "", **more: Any) -> Answer:
    headers = more.pop("headers", {})
    return Answer(status, {"code": code, "message": text or code, "request_id": "r", **more}, headers)


class FakeGlobus:
    """The service. `lies` are used up as they are told; `script` runs each task, in a thread of its own."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self.folders = dict(folders)
        self.about: dict[str, dict[str, Any]] = {each: {} for each in folders}
        self.lies: list[Lie] = []
        self.asked: list[Request] = []
        self.tasks: dict[str, FakeTask] = {}
        self.by_submission: dict[str, FakeTask] = {}
        self.script: Callable[[FakeTask], None] = FakeTask.move
        self.tokens: dict[str, str] = {}  # that let in, and the server that each is for
        self.refresh_tokens: dict[str, str] = {}
        self.most_listed, self.tells_total = 100_000, True  # entries of one answer, and of a folder
        self.lock = threading.Lock()

    def lie(self, words: str, answer: Answer | Callable[[Request], Answer | None], times: int = 1) -> None:
        self.lies.append(Lie(words, answer if callable(answer) else lambda _: answer, times))

    def count(self, words: str) -> int:
        return sum(words in each.line for each in self.asked)

    def token_for(self, server: str) -> str:
        token = f"{self.prefix}{uuid.uuid4()}"
        self.tokens[token] = server
        return token

    # --- answering -----------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        with self.lock:
            self.asked.append(request)
            lie = next((each for each in self.lies if each.times > 0 and each.words in request.line), None)
            if lie:
                lie.times -= 1
        if lie and (told := lie.answer(request)) is not None:
            return told
        if request.path.startswith("/v2/oauth2/token"):
            return self._token(request)
        if self.tokens.get(request.token) != TRANSFER:
            return error(401, "AuthenticationFailed", "Token is not active")
        return self._transfer(request)

    def _token(self, request: Request) -> Answer:
        if request.path.endswith("revoke"):
            self.tokens.pop(request.body["token"], None)
            self.refresh_tokens.pop(request.body["token"], None)
            return Answer(200, {"active": False})
        grant = request.body["grant_type"]
        if grant == "refresh_token":
            server = self.refresh_tokens.get(request.body["refresh_token"])
            if server is None:
                return Answer(400, {"error": "invalid_grant"})
            return Answer(200, self._granted([server], refresh=False))
        if grant == "client_credentials":
            if request.token != "basic":
                return Answer(401, {"error": "invalid_client"})
            scopes = request.body["scope"]
        else:
            if request.body.get("code") != "good-code":
                return Answer(400, {"error": "invalid_grant"})
            scopes = self.consented
        found = re.findall(r"scopes/([0-9a-f-]{36})/https", scopes)
        servers = [*([TRANSFER] if TRANSFER in scopes else []), *found]
        return Answer(200, self._granted(servers, refresh=grant == "authorization_code"))

    prefix = "token-"  # of access tokens
    consented = ""  # the scopes that the user was last shown

    def _granted(self, servers: list[str], *, refresh: bool) -> dict[str, Any]:
        told = []
        for server in servers:
            one: dict[str, Any] = {
                "access_token": self.token_for(server),
                "scope": f"scope-of-{server}",
                "expires_in": 172800,
                "token_type": "Bearer",
                "resource_server": server,
            }
            if refresh:
                one["refresh_token"] = f"refresh-{uuid.uuid4()}"
                self.refresh_tokens[one["refresh_token"]] = server
            told.append(one)
        return {**told[0], "other_tokens": told[1:]}

    def _transfer(self, request: Request) -> Answer:
        parts = request.path.removeprefix("/v0.10/").split("/")
        match parts:
            case ["endpoint", collection]:
                if collection not in self.folders:
                    return error(404, "EndpointNotFound", f"No such endpoint '{collection}'")
                about = {"https_server": None, "display_name": "a folder", **self.about[collection]}
                return Answer(200, {"DATA_TYPE": "endpoint", "id": collection, **about})
            case ["operation", "endpoint", collection, what]:
                return self._operation(request, self.folders[collection], what)
            case ["submission_id"]:
                return Answer(200, {"DATA_TYPE": "submission_id", "value": str(uuid.uuid4())})
            case ["transfer" | "delete" as what]:
                return self._submit(request, what)
            case ["task_list"]:
                return Answer(200, {"DATA": [task.document() for task in self.tasks.values()]})
            case ["task", task_id, *rest]:
                if task_id not in self.tasks:
                    return error(404, "TaskNotFound", f"No task {task_id}")
                return self._task(self.tasks[task_id], rest)
        return error(404, "ClientError.NotFound", request.path)

    def _operation(self, request: Request, root: Path, what: str) -> Answer:
        try:
            return self._operated(request, root, what)
        except OSError as failed:
            return error(502, "ExternalError.EndpointError", f"Error\nMessage: {failed.strerror}")

    def _operated(self, request: Request, root: Path, what: str) -> Answer:
        given = request.query if request.method == "GET" else request.body
        path = given.get("path") or given.get("old_path") or "/"
        there = root / path.lstrip("/")
        if what == "ls":
            if not there.is_dir():
                return error(404, "ClientError.NotFound", f"Directory '{path}' not found on endpoint")
            names = sorted(each.name for each in there.iterdir())
            offset, limit = (
                int(given.get("offset", 0)),
                min(int(given.get("limit", 100_000)), self.most_listed),
            )
            some = [described(there / name) for name in names[offset : offset + limit]]
            told = {"DATA_TYPE": "file_list", "DATA": some, "path": path, "length": len(some)}
            return Answer(200, told | ({"total": len(names)} if self.tells_total else {}))
        if what == "stat":
            if not (there.exists() or there.is_symlink()):
                return error(
                    404, "NotFound", "Path not found, Error (list)\nMessage: No such file or directory"
                )
            return Answer(200, described(there))
        if what == "mkdir":
            if there.exists():
                return error(502, "ExternalError.MkdirFailed.Exists", f"Path already exists: {path}")
            if not there.parent.is_dir():
                return error(404, "ClientError.NotFound", f"{path} not found")
            there.mkdir()
            return Answer(200, {"code": "DirectoryCreated"})
        target = root / given["new_path"].lstrip("/")
        if not there.exists():
            return error(404, "ClientError.NotFound", f"{path} not found")
        if target.exists():
            return error(502, "ExternalError.RenameFailed.Exists", "it exists")
        there.rename(target)
        return Answer(200, {"code": "FileRenamed"})

    def _submit(self, request: Request, what: str) -> Answer:
        data = request.body
        with self.lock:
            known = self.by_submission.get(data["submission_id"])
            if known is None:
                ends = (
                    ("source_endpoint", "destination_endpoint") if what == "transfer" else ("endpoint",) * 2
                )
                roots = tuple(self.folders[data[end]] for end in ends)
                task = FakeTask(data, roots)  # type: ignore[arg-type]
                self.tasks[task.task_id] = self.by_submission[data["submission_id"]] = task
                run = self.script if what == "transfer" else remove
                threading.Thread(target=run, args=(task,), daemon=True).start()
        code, task = ("Duplicate", known) if known else ("Accepted", task)
        return Answer(202, {"code": code, "submission_id": data["submission_id"], "task_id": task.task_id})

    @staticmethod
    def _task(task: FakeTask, rest: list[str]) -> Answer:
        match rest:
            case []:
                return Answer(200, task.document())
            case ["cancel"]:
                task.cancel()
                return Answer(200, {"code": "Canceled"})
            case ["event_list"]:
                return Answer(200, {"DATA": task.events[:10]})
            case ["successful_transfers"]:
                return Answer(200, {"DATA": task.moved, "next_marker": None})
            case _:
                some = [{"source_path": name, "error_code": code} for name, code in task.skipped]
                return Answer(200, {"DATA": some, "next_marker": None})


def remove(task: FakeTask) -> None:
    for item in task.items:
        if (task.roots[0] / item["path"].lstrip("/")).is_dir():
            task.fault("IS_A_DIRECTORY", "a directory")
            return
        (task.roots[0] / item["path"].lstrip("/")).unlink(missing_ok=True)
    task.end()


def described(path: Path) -> dict[str, Any]:
    target = str(path.readlink()) if path.is_symlink() else None
    if not path.exists():
        return {"name": path.name, "type": "invalid_symlink", "size": 0, "link_target": target}
    about = path.stat()
    when = datetime.fromtimestamp(int(about.st_mtime), UTC)
    return {
        "DATA_TYPE": "file",
        "name": path.name,
        "type": "dir" if path.is_dir() else "file" if path.is_file() else "pipe",
        "size": about.st_size,
        "last_modified": f"{when:%Y-%m-%d %H:%M:%S}+00:00",
        "permissions": f"{about.st_mode & 0o777:04o}",
        "link_target": target,
    }


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of who went away before an answer, as killed commands do."""


@contextlib.contextmanager
def fake_globus(folders: Mapping[str, Path]) -> Iterator[tuple[FakeGlobus, str]]:
    """The service while in the `with` block, and its URL."""
    fake = FakeGlobus(folders)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body: Any = None
            if raw and "json" in self.headers.get("Content-Type", ""):
                body = json.loads(raw)
            elif raw:
                body = {name: values[-1] for name, values in parse_qs(raw.decode()).items()}
            scheme, _, token = self.headers.get("Authorization", "").partition(" ")
            token = "basic" if scheme == "Basic" else token
            told = fake.answer(Request(self.command, parts.path, query, body, token))
            if told.then is not None:
                told.then()
                self.close_connection = True
                return
            if told.writes is not None:
                self.close_connection = True
                with contextlib.suppress(OSError):  # who has asked goes away
                    told.writes(self.wfile)
                return
            data = told.body if isinstance(told.body, bytes) else json.dumps(told.body).encode()
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = _QuietServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake, f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        for task in fake.tasks.values():
            task.cancelled.set()
        server.shutdown()
        server.server_close()
        thread.join()


def until(is_so: Callable[[], bool], within_s: float = 60.0) -> None:
    """Wait for something that happens in another process."""
    until_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until_s, "it did not happen"
        time.sleep(0.02)
