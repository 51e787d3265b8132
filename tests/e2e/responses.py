"""The model behind Codex: the OpenAI Responses API on loopback, answering by the same scripts as `model.py`.

In a test:     with Responses([Tool("exec_command", {"cmd": "make"}), Text("fixed")]) as server: ...

An `Error` is an HTTP error, a `Limit` the used-up subscription, and a `Break` a stream that says half way that it
failed; the kind of the break is the error's code. What the user typed is what stands in no tag of Codex's own.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from e2e import model
from e2e.model import Answer, Break, Cut, Error, Hang, Limit, Model, Mute, Request, Script, Slow, Text, Tool, Usage

MISSING = "run make e2e first: Codex is not installed"
"""The reason to skip a test that needs the program."""
KEPT = ("authorization", "content-type", "originator", "session-id", "session_id", "user-agent")
OWN = re.compile(r"<(?P<tag>[a-z_]+(?: instructions)?)>.*?</(?P=tag)>", re.DOTALL)
"""What Codex puts into a conversation by itself: where it is, what it may do."""
WORDS = "one two three four five six seven eight"


@dataclass(frozen=True)
class Coded(Error):
    """An HTTP error whose code is not the usual one of its status."""

    code: str = ""

    CODES: ClassVar[dict[int, str]] = {
        400: "invalid_value",
        401: "invalid_api_key",
        403: "unsupported_country_region_territory",
        404: "model_not_found",
        429: "rate_limit_exceeded",
        500: "server_error",
        503: "server_is_overloaded",
    }


# --- what a request was ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question(Request):
    """One question of Codex to the model, as it came."""

    @property
    def session(self) -> str:
        """The conversation as Codex names it."""
        return str(self.body.get("prompt_cache_key", ""))

    @property
    def prompt(self) -> str:
        """The text typed last."""
        said = typed(self.body)
        return said[-1] if said else ""

    @property
    def turns(self) -> list[tuple[str, str]]:
        """The conversation as a person would see it: (role, text)."""
        return list(_said(self.body))

    @property
    def results(self) -> list[str]:
        """What the tools gave back, in order."""
        items = [item for item in self.body["input"] if str(item.get("type")).endswith("_call_output")]
        return [item["output"] if isinstance(item["output"], str) else json.dumps(item["output"]) for item in items]

    @property
    def tools(self) -> dict[str, str]:
        """What the model may use: the name of each tool, and its type."""
        return {str(tool.get("name") or tool["type"]): str(tool["type"]) for tool in self.body.get("tools", [])}


def typed(body: Mapping[str, Any]) -> list[str]:
    """Everything the user typed in the conversation, in order."""
    return [text for role, text in _said(body) if role == "user"]


def _said(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for item in body.get("input", []):
        if item.get("type", "message") != "message" or item.get("role") not in ("user", "assistant"):
            continue
        for part in item["content"]:
            text = OWN.sub("", part.get("text", "")).strip() if item["role"] == "user" else part.get("text", "")
            if text:
                yield item["role"], text


# --- the server ------------------------------------------------------------------------------------------------------


class Responses(Model):
    """The server, in a thread of its own from `start` to `close`."""

    requests: list[Question]  # type: ignore[assignment]  # narrower than in Model: here only `receive` adds to it

    def __init__(self, script: Script | None = None) -> None:
        super().__init__(script)
        self._http.RequestHandlerClass = Exchange

    def __enter__(self) -> "Responses":
        self.start()
        return self

    def receive(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> tuple[Question, Answer]:
        """Record a question and decide its answer."""
        with self._news:
            turn = (str(body.get("prompt_cache_key")), *typed(body))
            question = Question(len(self.requests), self._calls[turn], path, headers, body)
            self._calls[turn] += 1
            self.requests.append(question)
            self._news.notify_all()
        try:
            return question, self._answer(question)
        except Exception as error:
            return question, Error(400, f"the script failed: {error!r}")


class Exchange(model.Exchange):
    """One request and its answer on the wire."""

    def do_POST(self) -> None:
        if self.path.startswith("/") and urlsplit(self.path).path.endswith("/responses"):
            self._model()
        else:
            self._other()

    def _model(self) -> None:
        body = json.loads(self._read())
        headers = {name: self.headers[name] for name in KEPT if name in self.headers}
        question, answer = self.server.model.receive(self.path, headers, body)
        assert isinstance(question, Question)
        match answer:
            case Error():
                self._error(answer)
            case Limit():
                self._limit(answer)
            case Mute():
                self.server.model.hold(answer.gate)
                self._stream(Text(answer.text), _response(question, Text(answer.text)), {})
            case _:
                self._stream(answer, _response(question, answer), {})

    def _error(self, error: Error, headers: Mapping[str, str] | None = None) -> None:
        code = getattr(error, "code", "") or Coded.CODES.get(error.status, "server_error")
        message = error.message or f"the script answers {error.status}"
        wait = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        kind = Error.NAMES.get(error.status, "server_error")
        self._json(error.status, {"error": {"message": message, "type": kind, "code": code, "param": None}}, wait)

    def _limit(self, limit: Limit) -> None:
        content = {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "plus",
            "resets_at": limit.resets_at,
        }
        self._json(429, {"error": content}, used(limit))

    def _stream(self, answer: Answer, response: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self._head("text/event-stream", {"transfer-encoding": "chunked", **headers})
        events = list(_events(response, pieces=1 if isinstance(answer, Text | Tool) else 8))
        middle = len(events) // 2
        for number, (name, fields) in enumerate(events):
            if number == middle and isinstance(answer, Cut):
                self.close_connection = True
                return
            if number == middle and isinstance(answer, Break):
                error = {"code": answer.kind, "message": "the script breaks this stream"}
                self._event("response.failed", {"response": {**response, "status": "failed", "error": error}})
                break
            if number == middle and isinstance(answer, Hang):
                self.server.model.hold(answer.gate)
            if name.endswith("delta") and isinstance(answer, Slow):
                self.server.model.pause(answer.seconds / 8)
            self._event(name, fields)
        self.wfile.write(b"0\r\n\r\n")


def used(limit: Limit) -> dict[str, str]:
    """The headers that tell how much of a subscription is used: all of one window, some of the other."""
    other = {"five_hour": "secondary", "seven_day": "primary"}[limit.window]
    return {
        f"x-codex-{name}-{field}": value
        for name, minutes, resets_at in (("primary", 300, limit.resets_at), ("secondary", 10080, limit.resets_at))
        for field, value in {
            "used-percent": "40.0" if name == other else "100.0",
            "window-minutes": str(minutes),
            "reset-at": str(resets_at + 99_000 if name == other else resets_at),
        }.items()
    }


def _response(question: Question, answer: Answer) -> dict[str, Any]:
    items = [_message(getattr(answer, "text", WORDS))] if getattr(answer, "text", WORDS) else []
    if isinstance(answer, Text) and answer.thought:
        items.insert(0, _thought(answer.thought))
    if isinstance(answer, Tool):
        items.append(_use(answer, question.tools.get(answer.name) == "custom"))
    usage: Usage = getattr(answer, "usage", Usage())
    return {
        "id": model._id("resp"),
        "object": "response",
        "status": "completed",
        "model": question.body.get("model", "unknown"),
        "output": items,
        "usage": {
            "input_tokens": usage.input + usage.cache_read,
            "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.cache_read + usage.output,
        },
    }


def _message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": model._id("msg"), "role": "assistant", "status": "completed", "content": content}


def _thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": model._id("rs"), "summary": [{"type": "summary_text", "text": text}]}


def _use(tool: Tool, custom: bool) -> dict[str, Any]:
    """A tool takes JSON, or, when it is a custom one, a text."""
    about = {"id": model._id("fc"), "call_id": model._id("call"), "name": tool.name, "status": "completed"}
    if custom:
        return {"type": "custom_tool_call", **about, "input": tool.input["input"]}
    return {"type": "function_call", **about, "arguments": json.dumps(tool.input)}


def _events(response: Mapping[str, Any], pieces: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """A response as the events of a stream."""
    yield "response.created", {"response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(response["output"]):
        yield "response.output_item.added", {"output_index": index, "item": {**item, "status": "in_progress"}}
        if item["type"] == "message":
            for part in model._split(item["content"][0]["text"], pieces):
                where = {"item_id": item["id"], "output_index": index, "content_index": 0}
                yield "response.output_text.delta", {**where, "delta": part}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": response}


# --- the program -----------------------------------------------------------------------------------------------------

CONFIG = """\
model = "{model}"
model_provider = "loopback"

[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = {retries}
stream_max_retries = {retries}
"""


def codex_environment(home: Path, server: Model, *, model: str = "gpt-5.4", retries: int = 0) -> dict[str, str]:
    """All that Codex gets to see: a person without settings, whose only model and only proxy is the server."""
    settings, scratch = home / "codex", home / "tmp"
    settings.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(exist_ok=True)
    (settings / "config.toml").write_text(CONFIG.format(model=model, url=server.url, retries=retries), "utf-8")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODEX_HOME": str(settings),
        "OPENAI_API_KEY": "dummy",
        # It warns when its home is below the folder for temporary files, as everything in a test is.
        "TMPDIR": str(scratch),
        # Whatever is asked of another host comes to us, is noted in `others` and refused.
        "HTTP_PROXY": server.url,
        "HTTPS_PROXY": server.url,
        "NO_PROXY": "127.0.0.1",
    }
