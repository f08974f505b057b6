"""A scripted server that stores parts of files, as Apache does, and how a test has it go wrong."""

import threading
import zlib

from web.scripted_http import Answer, Exchange, Script, Scripted, ScriptedHttp

from mpx.files.partial_names import is_partial_name

PROBE = "/.probe."


def is_probe(exchange: Exchange) -> bool:
    """Tell whether a request is about the small file on which it is tried whether parts are stored."""
    return PROBE in exchange.asked.path


def part_of(exchange: Exchange) -> tuple[int, int] | None:
    """Return which part a PUT is, its end exclusive; None: a whole file."""
    if not (text := exchange.asked.headers.get("content-range")):
        return None
    span, _, _ = text.removeprefix("bytes ").partition("/")
    first, last = map(int, span.split("-"))
    return first, last + 1


class Keeping:
    """Answers PUT: it keeps what a part leaves out. `bend` may answer parts of real files in its place."""

    def __init__(self, bend: Scripted | None = None) -> None:
        self.bend: Scripted = bend or self.put
        self._lock = threading.Lock()

    def script(self, **more: Scripted) -> Script:
        """Return what the server answers; `more`: to other methods."""
        return {"PUT": self._answer, **more}

    def _answer(self, exchange: Exchange) -> Answer | None:
        is_real = part_of(exchange) is not None and not is_probe(exchange)
        return self.bend(exchange) if is_real else self.put(exchange)

    def put(self, exchange: Exchange) -> Answer | None:
        """Store a file, or a part of one; nothing of what is cut off where it would be the first."""
        body = exchange.body()
        if len(body) < exchange.length and exchange.asked.path not in exchange.server.files:
            exchange.is_over = True
            return None
        return self.store(exchange, body)

    def store(self, exchange: Exchange, body: bytes) -> Answer:
        """Store other bytes than came."""
        files, name = exchange.server.files, exchange.asked.path
        with self._lock:
            was_there, part = name in files, part_of(exchange)
            if part is None:
                files[name] = body
            else:
                content = bytearray(files.get(name, b""))
                content += bytes(max(0, part[1] - len(content)))
                content[part[0] : part[0] + len(body)] = body
                files[name] = bytes(content)
        return Answer(204 if was_there else 201)

    def remove(self, exchange: Exchange) -> None:
        """Remove the file, as somebody else would."""
        with self._lock:
            exchange.server.files.pop(exchange.asked.path, None)


def telling(exchange: Exchange) -> Answer:
    """Answer HEAD with the Adler-32 of what is stored."""
    answer = exchange.usual()
    content = exchange.server.files.get(exchange.asked.path)
    return answer if content is None else answer.having(Digest=f"adler32={zlib.adler32(content):08x}")


def parts_sent(server: ScriptedHttp) -> int:
    """Return how many parts of real files the server was sent."""
    puts = [each for each in server.asked("PUT") if PROBE not in each.path]
    return sum("content-range" in each.headers for each in puts)


def left_over(server: ScriptedHttp) -> list[str]:
    """Return the partial files at the server."""
    return [name for name in server.files if is_partial_name(name)]
