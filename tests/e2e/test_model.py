"""The model the real programs are run against: over HTTP as it is, and under the real Claude Code."""

import http.client
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e import model, record
from e2e.model import (
    MISSING,
    Break,
    Cut,
    Error,
    Gate,
    Hang,
    Limit,
    Model,
    Mute,
    Script,
    Slow,
    Text,
    Tool,
    Usage,
    program,
    results,
    turns,
    typed,
)
from e2e.record import Ended, Person

# --- over HTTP -------------------------------------------------------------------------------------------------------


class Asked:
    """An answer that is read while it comes."""

    def __init__(self, server: Model, *messages: dict[str, Any] | str, stream: bool = False, **fields: Any) -> None:
        said = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=model.PATIENCE)
        body = {"model": "some-model", "max_tokens": 9, "stream": stream, "messages": said, **fields}
        headers = {"content-type": "application/json", "x-api-key": "dummy", "x-nobody": "cares"}
        self._connection.request("POST", "/v1/messages?beta=true", json.dumps(body), headers)

    def response(self) -> http.client.HTTPResponse:
        return self._connection.getresponse()

    def json(self) -> dict[str, Any]:
        response = self.response()
        return {"status": response.status, **json.loads(response.read())}

    def text(self) -> str:
        return "".join(block.get("text", "") for block in self.json()["content"])

    def events(self) -> Iterator[dict[str, Any]]:
        name = b""
        for line in self.response():
            if line.startswith(b"event: "):
                name = line.removeprefix(b"event: ").strip()
            elif line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                assert event["type"] == name.decode()
                yield event


def said(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")


@pytest.fixture
def serve() -> Iterator[Callable[..., Model]]:
    """Starts servers that end with the test."""
    servers: list[Model] = []

    def start(script: Script | None = None) -> Model:
        servers.append(Model(script))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_a_reply_comes_whole(serve: Callable[..., Model]) -> None:
    server = serve([Text("hello", Usage(1, 2, 3, 4), stop_reason="max_tokens")])
    reply = Asked(server, "hi").json()
    assert reply.pop("id").startswith("msg_")
    assert reply == {
        "status": 200,
        "type": "message",
        "role": "assistant",
        "model": "some-model",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "max_tokens",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4,
        },
    }


def test_a_reply_comes_as_a_stream(serve: Callable[..., Model]) -> None:
    events = list(Asked(serve([Text("hello", Usage(output=7))]), "hi", stream=True).events())
    assert [event["type"] for event in events] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"]["content"] == []
    assert events[3]["delta"] == {"type": "text_delta", "text": "hello"}
    assert events[5]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[5]["usage"]["output_tokens"] == 7


def test_a_thought_and_a_tool_are_streamed_in_pieces(serve: Callable[..., Model]) -> None:
    server = serve([Text("so", thought="hm"), Tool("Bash", {"command": "ls"}, text="look")])
    thought = [one["delta"] for one in Asked(server, "a", stream=True).events() if one["type"] == "content_block_delta"]
    assert thought == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "c2lnbmVk"},
        {"type": "text_delta", "text": "so"},
    ]
    events = list(Asked(server, "b", stream=True).events())
    pieces = [one["delta"]["partial_json"] for one in events if one.get("delta", {}).get("type") == "input_json_delta"]
    assert len(pieces) == 2
    assert json.loads("".join(pieces)) == {"command": "ls"}
    assert said(events) == "look"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_name_that_goes_with_its_number(serve: Callable[..., Model], status: int, kind: str) -> None:
    response = Asked(serve([Error(status)]), "hi").response()
    assert (response.status, response.getheader("retry-after")) == (status, None)
    assert json.loads(response.read())["error"] == {"type": kind, "message": f"the script answers {status}"}


def test_an_error_can_ask_to_come_again_later(serve: Callable[..., Model]) -> None:
    assert Asked(serve([Error(429, retry_after=5)]), "hi").response().getheader("retry-after") == "5"


def test_a_usage_limit_tells_its_reset_in_the_headers(serve: Callable[..., Model]) -> None:
    response = Asked(serve([Limit(4_000_000_000, "seven_day")]), "hi").response()
    assert response.status == 429
    prefix = "anthropic-ratelimit-unified-"
    found = {name.removeprefix(prefix): value for name, value in response.getheaders() if name.startswith(prefix)}
    assert found == {
        "status": "rejected",
        "reset": "4000000000",
        "representative-claim": "seven_day",
        "7d-status": "rejected",
        "7d-reset": "4000000000",
        "7d-utilization": "1.0",
        "overage-status": "rejected",
    }
    assert int(response.getheader("retry-after", "0")) > 0


def test_a_stream_is_cut_half_way(serve: Callable[..., Model]) -> None:
    events = []
    with pytest.raises(http.client.IncompleteRead):
        response = Asked(serve([Cut()]), "hi", stream=True).response()
        while True:
            events.append(response.read(1))
    assert events


def test_a_whole_reply_is_cut_half_way(serve: Callable[..., Model]) -> None:
    with pytest.raises(http.client.IncompleteRead):
        Asked(serve([Cut()]), "hi").json()


def test_a_stream_says_that_it_broke(serve: Callable[..., Model]) -> None:
    events = list(Asked(serve([Break()]), "hi", stream=True).events())
    assert said(events) == "one two three four f"
    assert events[-1]["error"]["type"] == "overloaded_error"


def test_a_stream_is_silent_half_way_until_the_test_lets_it_go_on(serve: Callable[..., Model]) -> None:
    hang = Hang()
    events = Asked(serve([hang]), "hi", stream=True).events()
    first = next(events)
    hang.gate.meet()
    assert first["type"] == "message_start"
    hang.gate.open()
    assert said([first, *events]) == hang.text


def test_not_one_byte_comes_until_the_test_lets_it(serve: Callable[..., Model]) -> None:
    gate = Gate()
    asked = Asked(serve([Mute(gate)]), "hi")
    gate.meet()
    gate.open()
    assert asked.text() == "at last"


def test_closing_lets_waiting_answers_go(serve: Callable[..., Model]) -> None:
    with Model([Hang()]) as server:
        asked = Asked(server, "hi")
        server.wait_for(1)
    assert asked.text() == Hang().text


def test_release_opens_every_gate(serve: Callable[..., Model]) -> None:
    hang = Hang()
    server = serve([hang])
    asked = Asked(server, "hi")
    hang.gate.meet()
    server.release()
    assert asked.text() == hang.text


def test_a_slow_reply_comes_in_pieces(serve: Callable[..., Model]) -> None:
    events = list(Asked(serve([Slow(0.01)]), "hi", stream=True).events())
    assert [event["type"] for event in events].count("content_block_delta") == 8
    assert said(events) == Slow(0).text


def test_a_callable_decides_by_the_request(serve: Callable[..., Model]) -> None:
    server = serve(lambda request: Text(request.prompt.upper()))
    assert Asked(server, "hi").text() == "HI"


def test_a_table_is_looked_up_by_a_piece_of_the_prompt_and_used_up_by_the_calls_of_the_turn(
    serve: Callable[..., Model],
) -> None:
    server = serve({"fix": [Error(529), Text("fixed")], "ever": Error(500), "tell": Text("told")})
    assert [Asked(server, "please fix it").json()["status"] for _ in range(2)] == [529, 200]
    assert Asked(server, "please fix it").text() == "done"
    assert [Asked(server, "for ever").json()["status"] for _ in range(3)] == [500] * 3
    assert Asked(server, "tell").text() == "told"
    assert Asked(server, "what?").json()["error"]["message"] == "the script has no answer to request 7: what?"


def test_two_conversations_have_turns_of_their_own(serve: Callable[..., Model]) -> None:
    server = serve({"go": [Text("first"), Text("second")]})
    one, two = ({"user_id": json.dumps({"session_id": name})} for name in ("one", "two"))
    assert [Asked(server, "go", metadata=named).text() for named in (one, two, one)] == ["first", "first", "second"]
    assert [request.session for request in server.requests] == ["one", "two", "one"]


def test_a_list_is_used_up_by_whoever_asks(serve: Callable[..., Model]) -> None:
    server = serve([Text("first"), Text("second")])
    assert [Asked(server, "a").text(), Asked(server, "b").text()] == ["first", "second"]
    assert Asked(server, "c").json()["error"]["message"] == "the script has no answer to request 2: c"


def test_a_script_that_fails_is_an_answer_too(serve: Callable[..., Model]) -> None:
    server = serve(lambda request: request.body["nothing"])
    assert Asked(server, "hi").json()["error"]["message"] == "the script failed: KeyError('nothing')"


def test_what_is_typed_says_what_to_answer(serve: Callable[..., Model]) -> None:
    server = serve()
    prompt = 'Do this.\nUSAGE 5 6 7 8\nTOOL Bash {"command": "ls"}\nERROR 429 3\nREPLY: one\\ntwo'
    call = Asked(server, prompt).json()
    assert (call["stop_reason"], call["content"][0]["name"], call["content"][0]["input"]) == (
        "tool_use",
        "Bash",
        {"command": "ls"},
    )
    assert call["usage"] == Usage(5, 6, 7, 8).wire()
    assert Asked(server, prompt).response().getheader("retry-after") == "3"
    assert Asked(server, prompt).text() == "one\ntwo"
    assert Asked(server, prompt).text() == "done"
    assert Asked(server, "just words").text() == "ok"


def test_every_directive_has_its_answer(serve: Callable[..., Model]) -> None:
    lines = "REPLY: a|THINK: b|HISTORY|TOOL T {}|STOP refusal|ERROR 500|LIMIT 60|SLOW 1|CUT|BREAK|HANG|MUTE".split("|")
    request = model.Request(0, 0, "", {}, {"messages": [{"role": "user", "content": "\n".join(lines)}]})
    kinds = [type(answer) for answer in model.directives(request)]
    assert kinds == [Text, Text, Text, Tool, Text, Error, Limit, Slow, Cut, Break, Hang, Mute]
    assert {line.split()[0] for line in lines} == set(model.DIRECTIVES)
    assert all(word in (model.directives.__doc__ or "") for word in model.DIRECTIVES)


def test_requests_are_kept_and_can_be_read_as_a_conversation(serve: Callable[..., Model]) -> None:
    server = serve(lambda request: Text("fine"))
    reminder = "<system-reminder>\nmind this\n</system-reminder>"
    Asked(
        server,
        {
            "role": "user",
            "content": [{"type": "text", "text": reminder}, {"type": "text", "text": f"first\n{reminder}"}],
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "one"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "from the tool"}]},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "second"},
    ).json()
    (request,) = server.requests
    assert typed(request) == ["first", "second"]
    assert turns(request) == [("user", "first"), ("assistant", "one"), ("assistant", "two"), ("user", "second")]
    assert results(request) == ["from the tool"]
    assert request.prompt == "second"
    assert request.headers == {"content-type": "application/json", "x-api-key": "dummy"}
    assert (request.number, request.call, request.path) == (0, 0, "/v1/messages?beta=true")


def test_everything_else_is_noted_and_answered(serve: Callable[..., Model]) -> None:
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=model.PATIENCE)
    found = []
    for method, path, body in [
        ("GET", "/v1/models", None),
        ("POST", "/v1/messages/count_tokens", "x" * 40),
        ("POST", "/api/event", "{}"),
        ("GET", "http://example.invalid/", None),
    ]:
        connection.request(method, path, body)
        response = connection.getresponse()
        found.append((response.status, json.loads(response.read())))
    assert found == [(200, {}), (200, {"input_tokens": 10}), (200, {}), (403, {"error": "no way out"})]
    assert server.others == [
        "GET /v1/models",
        "POST /v1/messages/count_tokens",
        "POST /api/event",
        "GET http://example.invalid/",
    ]
    assert server.requests == []


def test_nobody_gets_out_through_the_server(serve: Callable[..., Model]) -> None:
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=model.PATIENCE)
    connection.set_tunnel("example.invalid", 443)
    with pytest.raises(OSError, match="Tunnel connection failed: 403 no way out"):
        connection.connect()
    assert server.others == ["CONNECT example.invalid:443"]


def test_it_is_a_program_too(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, model.__file__, "--port", "0", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline())
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=model.PATIENCE)
            body = json.dumps({"messages": [{"role": "user", "content": "REPLY: here"}]})
            connection.request("POST", "/v1/messages", body)
            assert json.loads(connection.getresponse().read())["content"][0]["text"] == "here"
        finally:
            process.terminate()
    (line,) = log.read_text("utf-8").splitlines()
    assert json.loads(line)["body"] == json.loads(body)


def test_the_environment_has_nothing_of_the_person_who_runs_the_tests(
    serve: Callable[..., Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    monkeypatch.setenv("CLAUDECODE", "1")
    server = serve()
    environment = model.claude_environment(tmp_path, server)
    assert environment["HOME"] == str(tmp_path)
    assert environment["ANTHROPIC_BASE_URL"] == server.url
    assert not {"ANTHROPIC_AUTH_TOKEN", "CLAUDECODE"} & set(environment)
    assert set(environment) ^ set(model.subscribed(environment)) == {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}


def test_a_program_that_is_not_installed_has_no_path() -> None:
    assert program("no-such-agent") is None


def test_there_is_a_small_recording_of_every_case_without_anything_of_this_machine() -> None:
    files = {path.stem: path for path in record.FOLDER.iterdir() if not path.name.startswith("codex_")}
    # Those of older releases carry their version.
    assert {name for name in files if "_2." not in name} == set(record.cases())
    for path in files.values():
        text = path.read_text("utf-8")
        assert len(text) < 30_000
        assert str(Path.home()) not in text.replace('"/home', "")
        lines = [json.loads(line) for line in text.splitlines()]
        assert [line["type"] for line in lines][-1] == "result"
        assert lines[0]["cwd"] == "/project"


# --- under the real program ------------------------------------------------------------------------------------------

real = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]


def marked(test: Callable[..., None]) -> Callable[..., None]:
    for mark in real:
        test = mark(test)
    return test


@pytest.fixture
def someone(serve: Callable[..., Model], tmp_path: Path) -> Callable[..., Person]:
    """Makes the person whose Claude Code talks to a script."""
    return lambda script=None, **given: record.person(tmp_path, serve(script), **given)


@marked
def test_claude_code_gets_a_reply(someone: Callable[..., Person]) -> None:
    person = someone([Text("hello", Usage(10, 5, 1000, 200))])
    ended = person.claude("hi")
    assert (ended.code, ended.err) == (0, "")
    assert [line["type"] for line in ended.lines] == ["system", "assistant", "result"]
    assert (ended.result["is_error"], ended.result["result"]) == (False, "hello")
    assert {name: ended.result["usage"][name] for name in Usage().wire()} == Usage(10, 5, 1000, 200).wire()
    (request,) = person.server.requests
    assert typed(request) == ["hi"]
    assert request.headers["x-api-key"] == "dummy"
    assert request.session == ended.result["session_id"]


@marked
def test_claude_code_runs_a_tool_and_brings_back_its_result(someone: Callable[..., Person]) -> None:
    person = someone([Tool("Bash", {"command": "echo written > file; cat file"}), Text("seen")])
    ended = person.claude("go", record.SKIP)
    assert ended.result["result"] == "seen"
    assert (person.project / "file").read_text("utf-8") == "written\n"
    assert [results(request) for request in person.server.requests] == [[], ["written"]]
    assert [request.call for request in person.server.requests] == [0, 1]


@marked
def test_claude_code_is_denied_a_tool_and_still_ends_well(someone: Callable[..., Person]) -> None:
    person = someone([Tool("Bash", {"command": "touch made"}), Text("no luck")])
    ended = person.claude("go")
    assert (ended.code, ended.result["is_error"], ended.result["result"]) == (0, False, "no luck")
    assert [denied["tool_input"] for denied in ended.result["permission_denials"]] == [{"command": "touch made"}]
    assert not (person.project / "made").exists()


@marked
def test_a_branch_sees_exactly_the_conversation_it_came_from(someone: Callable[..., Person]) -> None:
    person = someone({"first": Text("one"), "branch": Text("two"), "again": Text("three")})
    base, branch, other = (str(uuid.uuid4()) for _ in range(3))
    fork = ("--resume", base, "--fork-session", "--session-id")
    person.claude("first", "--session-id", base)
    ended = person.claude("branch", *fork, branch)
    person.claude("again", *fork, other)
    person.claude("again", "--resume", branch)
    assert ended.result["session_id"] == branch
    start = [("user", "first"), ("assistant", "one")]
    assert [(request.session, turns(request)) for request in person.server.requests] == [
        (base, [("user", "first")]),
        (branch, [*start, ("user", "branch")]),
        (other, [*start, ("user", "again")]),
        (branch, [*start, ("user", "branch"), ("assistant", "two"), ("user", "again")]),
    ]


@marked
def test_an_overloaded_model_is_an_api_error_after_the_retries(someone: Callable[..., Person]) -> None:
    person = someone({"hi": Error(529)})
    ended = person.claude("hi", CLAUDE_CODE_MAX_RETRIES="1")
    result = ended.result
    assert (ended.code, result["is_error"], result["subtype"]) == (1, True, "success")
    assert (result["terminal_reason"], result["api_error_status"]) == ("api_error", 529)
    assert [(one["attempt"], one["error_status"]) for one in ended.all("system", "api_retry")] == [(1, 529)]
    assert len(person.server.requests) == 2


@marked
def test_a_usage_limit_tells_when_it_ends(someone: Callable[..., Person]) -> None:
    reset = int(time.time()) + 3600
    person = someone([Limit(reset)], subscription=True)
    ended = person.claude("hi")
    (event,) = ended.all("rate_limit_event")
    told = event["rate_limit_info"]
    assert (told["status"], told["resetsAt"], told["rateLimitType"]) == ("rejected", reset, "five_hour")
    assert (ended.code, ended.result["is_error"], ended.result["api_error"]) == (1, True, "usage_limit_reached")
    (request,) = person.server.requests
    assert request.headers["authorization"] == "Bearer dummy"


@marked
@pytest.mark.parametrize("failure", [Cut(), Break()], ids=["cut", "broken"])
def test_claude_code_asks_again_when_a_stream_ends_half_way(
    someone: Callable[..., Person], failure: Cut | Break
) -> None:
    person = someone([failure, Text("hello")])
    assert person.claude("hi").result["result"] == "hello"
    assert len(person.server.requests) == 2


@marked
def test_claude_code_waits_while_a_stream_is_silent(someone: Callable[..., Person]) -> None:
    hang = Hang()
    person = someone([hang])
    ended: list[Ended] = []
    thread = threading.Thread(target=lambda: ended.append(person.claude("hi")))
    thread.start()
    hang.gate.meet()
    assert not ended
    hang.gate.open()
    thread.join(model.PATIENCE)
    assert ended[0].result["result"] == hang.text


@marked
def test_claude_code_asks_nothing_of_anybody_but_the_model(someone: Callable[..., Person]) -> None:
    person = someone({"go": [Tool("Bash", {"command": "echo one"}), Text("done")]})
    assert person.claude("go", record.SKIP).code == 0
    assert person.server.others == []
    assert {request.path for request in person.server.requests} == {"/v1/messages?beta=true"}


@marked
def test_whoever_asks_another_host_below_claude_code_is_noticed_and_refused(someone: Callable[..., Person]) -> None:
    """Else the test above would prove nothing. The name can never be one of a real host."""
    ask = """python3 -c 'import urllib.request; urllib.request.urlopen("https://example.invalid")' 2>&1 | tail -n 1"""
    person = someone([Tool("Bash", {"command": ask}), Text("refused")])
    assert person.claude("go", record.SKIP).result["result"] == "refused"
    assert person.server.others == ["CONNECT example.invalid:443"]
    assert "403 no way out" in results(person.server.requests[-1])[0]


@marked
@pytest.mark.parametrize("name", record.cases())
def test_claude_code_still_prints_what_was_recorded(name: str) -> None:
    _, text = record.record(record.cases()[name])
    assert shape(text) == shape((record.FOLDER / f"{name}.jsonl").read_text("utf-8"))


def shape(text: str) -> list[tuple[str, str, list[str]]]:
    """What a reader depends on: the kinds of lines in their order, and what each holds."""
    lines = [json.loads(line) for line in text.splitlines()]
    return [(line["type"], line.get("subtype", ""), sorted(line)) for line in lines]
