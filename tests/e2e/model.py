"""A model to run real agent programs against: the Anthropic Messages API on loopback, answering as a script says.

In a test:     with Model({"fix it": [Tool("Bash", {"command": "make"}), Text("fixed")]}) as server: ...
As a program:  python tests/e2e/model.py --port 0      prints its port; what is typed says what to answer.

A script is one of
    a callable      gets the Request, gives the Answer
    a table         a piece of the last typed text -> the answers of that turn
    a list          the answers in the order of the requests, whoever asks
    nothing         the lines of the last typed text are the answers (see `directives`)

A turn is what follows one typed text. Its answers are used up one per request, so a failed request uses one up too:
[Error(529), Text("hello")] fails once, and the second attempt is answered. After the last one a failure goes on for
ever; anything else is followed by "done".
"""

import argparse
import json
import os
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
MISSING = "run make e2e first: Claude Code is not installed"
"""The reason to skip a test that needs the program."""
PATIENCE = 60.0
"""Seconds until something that does not come is called missing; nothing is measured with it."""

# --- what a request was ----------------------------------------------------------------------------------------------

KEPT = (
    "anthropic-beta",
    "anthropic-version",
    "authorization",
    "content-type",
    "user-agent",
    "x-api-key",
    "x-app",
    "x-stainless-retry-count",
)
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """One question to the model, as it came."""

    number: int
    """Counts the questions to this server from 0."""
    call: int
    """Counts the questions of this turn from 0, failed attempts too."""
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def session(self) -> str:
        """The conversation as Claude Code names it in the metadata; empty if it does not."""
        return session(self.body)

    @property
    def prompt(self) -> str:
        """The text typed last."""
        said = typed(self)
        return said[-1] if said else ""


def typed(request: Request) -> list[str]:
    """Everything the user typed in the conversation, in order: no reminders, no results of tools."""
    return _typed(request.body)


def turns(request: Request) -> list[tuple[str, str]]:
    """The conversation as a person would see it: (role, text), without reminders, tools and thoughts."""
    return [
        (message["role"], text)
        for message in request.body.get("messages", [])
        if message["role"] in ("user", "assistant")
        for text in _texts(message)
    ]


def results(request: Request) -> list[str]:
    """What the tools of the conversation gave back, in order."""
    blocks = [block for message in request.body.get("messages", []) for block in _blocks(message["content"])]
    return [
        "\n".join(part.get("text", "") for part in _blocks(block.get("content", "")))
        for block in blocks
        if block.get("type") == "tool_result"
    ]


def session(body: Mapping[str, Any]) -> str:
    """The id of the conversation, from the metadata."""
    try:
        return str(json.loads(body["metadata"]["user_id"])["session_id"])
    except (KeyError, TypeError, ValueError):
        return ""


def _typed(body: Mapping[str, Any]) -> list[str]:
    return [text for message in body.get("messages", []) if message["role"] == "user" for text in _texts(message)]


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    for block in _blocks(message["content"]):
        text = REMINDER.sub("", block["text"]).strip() if block.get("type") == "text" else ""
        if text:
            yield text


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


# --- what the model can do -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """The tokens an answer says it took."""

    input: int = 100
    output: int = 20
    cache_read: int = 0
    cache_write: int = 0

    def wire(self) -> dict[str, int]:
        return {
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.cache_write,
            "cache_read_input_tokens": self.cache_read,
            "output_tokens": self.output,
        }


class Gate:
    """Where an answer waits: it says that it came there, and goes on when the test opens."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        self.opened.wait()

    def meet(self) -> None:
        """Wait until an answer stands here."""
        assert self.reached.wait(PATIENCE), "no answer came to this gate"

    def open(self) -> None:
        self.opened.set()


@dataclass(frozen=True)
class Text:
    """A reply."""

    text: str
    usage: Usage = Usage()
    stop_reason: str = "end_turn"
    thought: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """The use of a tool; its result comes back with the next request."""

    name: str
    input: Mapping[str, Any]
    text: str = ""
    """Said before the tool is used."""
    usage: Usage = Usage()


@dataclass(frozen=True)
class Slow:
    """A reply in pieces with a pause before each."""

    seconds: float
    """The time it takes as a whole."""
    text: str = "one two three four five six seven eight"
    usage: Usage = Usage()


@dataclass(frozen=True)
class Error:
    """An HTTP error."""

    status: int
    message: str = ""
    retry_after: int | None = None

    NAMES: ClassVar[dict[int, str]] = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }


@dataclass(frozen=True)
class Limit:
    """The subscription is used up until a moment (in seconds since 1970)."""

    resets_at: int
    window: str = "five_hour"
    """Or `seven_day`, or that of one model: `seven_day_opus`."""


@dataclass(frozen=True)
class Cut:
    """The connection ends in the middle of the reply."""


@dataclass(frozen=True)
class Break:
    """The stream says in the middle of the reply that it failed."""

    kind: str = "overloaded_error"


@dataclass(frozen=True)
class Hang:
    """Nothing comes after the first half of the reply, until the gate is opened."""

    gate: Gate = field(default_factory=Gate)
    text: str = "one two three four five six seven eight"


@dataclass(frozen=True)
class Mute:
    """Not one byte comes, until the gate is opened; then the reply."""

    gate: Gate = field(default_factory=Gate)
    text: str = "at last"


Answer = Text | Tool | Slow | Error | Limit | Cut | Break | Hang | Mute
Script = Callable[[Request], Answer] | Mapping[str, Answer | Sequence[Answer]] | Sequence[Answer]
FAILURES = (Error, Limit, Cut, Break, Hang, Mute)
DONE = Text("done")

# --- which answer it is ----------------------------------------------------------------------------------------------


def answering(script: Script | None) -> Callable[[Request], Answer]:
    """Any kind of script as a callable."""
    if script is None:
        return lambda request: _nth(directives(request), request.call)
    if callable(script):
        return script
    if isinstance(script, Mapping):
        return lambda request: _from_table(script, request)
    return lambda request: script[request.number] if request.number < len(script) else _unscripted(request)


def _from_table(table: Mapping[str, Answer | Sequence[Answer]], request: Request) -> Answer:
    for piece, answers in table.items():
        if piece in request.prompt:
            return _nth([answers] if isinstance(answers, Answer) else answers, request.call)
    return _unscripted(request)


def _nth(answers: Sequence[Answer], call: int) -> Answer:
    if call < len(answers):
        return answers[call]
    return answers[-1] if answers and isinstance(answers[-1], FAILURES) else DONE


def _unscripted(request: Request) -> Answer:
    return Error(400, f"the script has no answer to request {request.number}: {request.prompt[:200]}")


def directives(request: Request) -> list[Answer]:
    r"""The answers that stand in the last typed text, one per line; other lines are passed over.

    REPLY: text              a reply; \n in it is a new line
    THINK: text              a thought, then the reply "thought"
    HISTORY                  a reply that lists all typed texts as JSON
    TOOL Bash {"command": "ls"}
    STOP max_tokens          a reply that ended for this reason
    ERROR 529                an HTTP error; ERROR 429 5 asks to come again in 5 seconds
    LIMIT 3600               the subscription is used up for so many seconds
    SLOW 2                   a reply that takes so many seconds
    CUT   BREAK              the stream ends, or fails, half way
    HANG  MUTE               silence half way, or from the start
    USAGE 100 20 0 0         no answer: tokens in, out, read from and written to the cache, for the lines below it
    """
    answers: list[Answer] = []
    usage = Usage()
    for line in request.prompt.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "USAGE":
            usage = Usage(*map(int, rest.split()))
        elif word in DIRECTIVES:
            answer = DIRECTIVES[word](request, rest.strip())
            answers.append(replace(answer, usage=usage) if isinstance(answer, Text | Tool | Slow) else answer)
    return answers or [Text("ok", usage)]


def _tool(request: Request, rest: str) -> Tool:
    name, _, given = rest.partition(" ")
    return Tool(name, json.loads(given or "{}"))


def _error(request: Request, rest: str) -> Error:
    status, _, wait = rest.partition(" ")
    return Error(int(status), retry_after=int(wait) if wait else None)


DIRECTIVES: dict[str, Callable[[Request, str], Answer]] = {
    "REPLY:": lambda request, rest: Text(rest.replace("\\n", "\n")),
    "THINK:": lambda request, rest: Text("thought", thought=rest),
    "HISTORY": lambda request, rest: Text(json.dumps(typed(request))),
    "TOOL": _tool,
    "STOP": lambda request, rest: Text("stopped", stop_reason=rest),
    "ERROR": _error,
    "LIMIT": lambda request, rest: Limit(int(time.time()) + int(rest or 3600)),
    "SLOW": lambda request, rest: Slow(float(rest or 2)),
    "CUT": lambda request, rest: Cut(),
    "BREAK": lambda request, rest: Break(),
    "HANG": lambda request, rest: Hang(),
    "MUTE": lambda request, rest: Mute(),
}

# --- the server ------------------------------------------------------------------------------------------------------


class Model:
    """The server, in a thread of its own from `start` to `close`."""

    def __init__(self, script: Script | None = None, *, port: int = 0, log: Path | None = None) -> None:
        self.requests: list[Request] = []
        """Every question to the model, in the order they came."""
        self.others: list[str] = []
        """Every other request, as `METHOD address`; with `claude_environment` also attempts to reach other hosts."""
        self._answer = answering(script)
        self._log = log
        self._news = threading.Condition()
        self._calls: Counter[tuple[str, ...]] = Counter()
        self._gates: list[Gate] = []
        self._closing = threading.Event()
        self._http = Listener(("127.0.0.1", port), Exchange)
        self._http.model = self
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Model":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        """End; answers that still wait go on at once."""
        self._closing.set()
        self.release()
        self._http.shutdown()
        self._http.server_close()

    def release(self) -> None:
        """Open the gates of all answers that wait now."""
        with self._news:
            for gate in self._gates:
                gate.open()

    def wait_for(self, count: int) -> Request:
        """Wait until so many questions came; the last of them."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.requests) >= count, PATIENCE), f"request {count} never came"
            return self.requests[count - 1]

    def receive(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> tuple[Request, Answer]:
        """Record a question and decide its answer."""
        turn = (session(body), *_typed(body))
        with self._news:
            request = Request(len(self.requests), self._calls[turn], path, headers, body)
            self._calls[turn] += 1
            self.requests.append(request)
            self._write({"path": path, "headers": headers, "body": body})
            self._news.notify_all()
        try:
            return request, self._answer(request)
        except Exception as error:
            return request, Error(400, f"the script failed: {error!r}")

    def note(self, method: str, address: str) -> None:
        """Record a request that is no question."""
        with self._news:
            self.others.append(f"{method} {address}")
            self._write({"other": self.others[-1]})

    def hold(self, gate: Gate) -> None:
        """Wait at a gate; not at all while the server closes."""
        with self._news:
            self._gates.append(gate)
        if self._closing.is_set():
            gate.open()
        gate.wait()

    def pause(self, seconds: float) -> None:
        """Let time pass; closing cuts it short."""
        self._closing.wait(seconds)

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    # An agent that is killed leaves connections behind; nobody waits for their threads.
    block_on_close = False
    model: Model

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients are killed in these tests: a connection that breaks is no news."""


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer on the wire."""

    protocol_version = "HTTP/1.1"
    server: Listener

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._other()

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def do_CONNECT(self) -> None:
        """Somebody takes us for the proxy to the outside: there is none."""
        self.server.model.note("CONNECT", self.path)
        self.close_connection = True
        self.send_error(403, "no way out")

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/messages/count_tokens"):
            content = self._read()
            self.server.model.note("POST", self.path)
            self._json(200, {"input_tokens": len(content) // 4})
        elif path.endswith("/messages") and self.path.startswith("/"):
            self._model()
        else:
            self._other()

    def _other(self) -> None:
        self._read()
        self.server.model.note(self.command, self.path)
        if self.path.startswith("/"):
            self._json(200, {})
        else:
            self._json(403, {"error": "no way out"})

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _model(self) -> None:
        try:
            body = json.loads(self._read())
        except ValueError:
            return self._error(Error(400, "the body is no JSON"))
        headers = {name: self.headers[name] for name in KEPT if name in self.headers}
        request, answer = self.server.model.receive(self.path, headers, body)
        match answer:
            case Error():
                self._error(answer)
            case Limit():
                self._limit(answer)
            case Mute():
                self.server.model.hold(answer.gate)
                self._reply(request, Text(answer.text))
            case _:
                self._reply(request, answer)

    # failures

    def _error(self, error: Error, headers: Mapping[str, str] | None = None) -> None:
        kind = Error.NAMES.get(error.status, "api_error")
        message = error.message or f"the script answers {error.status}"
        wait = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        content = {"type": "error", "error": {"type": kind, "message": message}, "request_id": _id("req")}
        self._json(error.status, content, {**wait, **(headers or {})})

    def _limit(self, limit: Limit) -> None:
        wait = max(0, limit.resets_at - int(time.time()))
        self._error(
            Error(429, "this subscription is used up for now", retry_after=wait),
            unified("rejected", limit.resets_at, limit.window, utilization=1.0),
        )

    # replies

    def _reply(self, request: Request, answer: Answer) -> None:
        message = _message(request, answer)
        headers = answer.headers if isinstance(answer, Text) else {}
        if request.body.get("stream"):
            self._stream(answer, message, headers)
        else:
            self._whole(answer, message, headers)

    def _whole(self, answer: Answer, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        match answer:
            case Cut():
                content = json.dumps(message).encode()
                self._head("application/json", {"content-length": str(len(content))})
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
                return
            case Break():
                return self._error(Error(529))
            case Hang():
                self.server.model.hold(answer.gate)
            case Slow():
                self.server.model.pause(answer.seconds)
            case _:
                pass
        self._json(200, message, headers)

    def _stream(self, answer: Answer, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self._head("text/event-stream", {"transfer-encoding": "chunked", **headers})
        events = list(_events(message, pieces=1 if isinstance(answer, Text | Tool) else 8))
        middle = len(events) // 2
        for number, (name, fields) in enumerate(events):
            if number == middle and isinstance(answer, Cut):
                self.close_connection = True
                return
            if number == middle and isinstance(answer, Break):
                self._event("error", {"error": {"type": answer.kind, "message": "the script breaks this stream"}})
                break
            if number == middle and isinstance(answer, Hang):
                self.server.model.hold(answer.gate)
            if name == "content_block_delta" and isinstance(answer, Slow):
                self.server.model.pause(answer.seconds / 8)
            self._event(name, fields)
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, name: str, fields: Mapping[str, Any]) -> None:
        content = f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    def _json(self, status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        encoded = json.dumps(content).encode()
        self._head("application/json", {"content-length": str(len(encoded)), **(headers or {})}, status)
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def _head(self, kind: str, headers: Mapping[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "request-id": _id("req"), **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def unified(status: str, resets_at: int, window: str = "five_hour", *, utilization: float) -> dict[str, str]:
    """The headers that tell how much of a subscription is used: `allowed`, `allowed_warning` or `rejected`."""
    short = {"five_hour": "5h"}.get(window, "7d")
    fields = {
        "status": status,
        "reset": str(resets_at),
        "representative-claim": window,
        f"{short}-status": status,
        f"{short}-reset": str(resets_at),
        f"{short}-utilization": str(utilization),
        "overage-status": "rejected",
    }
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in fields.items()}


def _message(request: Request, answer: Answer) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if isinstance(answer, Text) and answer.thought:
        blocks.append({"type": "thinking", "thinking": answer.thought, "signature": "c2lnbmVk"})
    text = getattr(answer, "text", "one two three four five six seven eight")
    if text or not isinstance(answer, Tool):
        blocks.append({"type": "text", "text": text})
    if isinstance(answer, Tool):
        blocks.append({"type": "tool_use", "id": _id("toolu"), "name": answer.name, "input": dict(answer.input)})
    usage: Usage = getattr(answer, "usage", Usage())
    return {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "unknown"),
        "content": blocks,
        "stop_reason": "tool_use" if isinstance(answer, Tool) else getattr(answer, "stop_reason", "end_turn"),
        "stop_sequence": None,
        "usage": usage.wire(),
    }


def _events(message: Mapping[str, Any], pieces: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """A message as the events of a stream."""
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"message": start}
    yield "ping", {}
    for index, block in enumerate(message["content"]):
        empty, deltas = _deltas(block, pieces)
        yield "content_block_start", {"index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield "message_delta", {"delta": ending, "usage": usage}
    yield "message_stop", {}


def _deltas(block: dict[str, Any], pieces: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and what is then added to it."""
    match block["type"]:
        case "tool_use":
            parts = _split(json.dumps(block["input"]), 2)
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
        case "thinking":
            signed = {"type": "signature_delta", "signature": block["signature"]}
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            return {**block, "thinking": "", "signature": ""}, [thought, signed]
        case _:
            parts = _split(block["text"], pieces)
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in parts]


def _split(text: str, pieces: int) -> list[str]:
    size = -(-len(text) // pieces) or 1
    return [text[at : at + size] for at in range(0, len(text), size)]


def _id(kind: str) -> str:
    # Never the same again: a program that goes on with an old conversation may meet a new server.
    return f"{kind}_{uuid.uuid4().hex[:24]}"


# --- the programs ----------------------------------------------------------------------------------------------------


def program(name: str) -> str | None:
    """Where an agent's program is installed for the tests; None if it is not."""
    path = ROOT / ".cache" / "agents" / "node_modules" / ".bin" / name
    return str(path) if path.exists() else None


def claude_environment(home: Path, server: Model) -> dict[str, str]:
    """All that Claude Code gets to see: a person without settings, whose only model and only proxy is the server."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "dummy",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
        # Whatever is asked of another host comes to us, is noted in `others` and refused.
        "HTTP_PROXY": server.url,
        "HTTPS_PROXY": server.url,
        "NO_PROXY": "127.0.0.1",
    }


def subscribed(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a person who pays by subscription instead of by key."""
    rest = {name: value for name, value in environment.items() if name != "ANTHROPIC_API_KEY"}
    return {**rest, "CLAUDE_CODE_OAUTH_TOKEN": "dummy"}


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A model on loopback; what is typed says what it answers.")
    parser.add_argument("--port", type=int, default=0, help="0 is any free one; it is printed")
    parser.add_argument("--log", type=Path, help="a file that gets every request as a line of JSON")
    given = parser.parse_args(None if arguments is None else list(arguments))
    with Model(port=given.port, log=given.log) as server:
        serve(server)


def serve(server: Model) -> None:
    """Say the port, and wait until somebody interrupts."""
    print(server.port, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
