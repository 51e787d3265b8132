"""Codex as a backend, without the program: what would be started, and what its recorded output means."""

import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raymond.backends import Abilities, Found, Observation, Places, Reply, Setup, Trouble, Turn
from raymond.backends.codex import OUTER, Codex
from raymond.backends.codex_events import CodexReader
from raymond.backends.codex_record import home
from raymond.machine.failures import KINDS
from raymond.machine.inputs import Spending
from raymond.machine.prices import UNKNOWN_TURN
from raymond.store.trust import Trust

RECORDINGS = Path(__file__).parents[1] / "e2e" / "recordings"
SESSION = "00000000-0000-7000-8000-000000000001"
BASE = "22222222-2222-7222-8222-222222222222"
FIXED = ["codex", "exec", "--json", "--skip-git-repo-check"]
OFF = ["analytics.enabled", "features.apps", "features.plugins", "features.remote_plugin"]
FIXED += [part for name in [*OFF, "features.unbounded_connection_retries"] for part in ("-c", f"{name}=false")]
FIXED += ["-c", 'projects={"/"={trust_level="untrusted"}}']
USUAL = ["--sandbox", "workspace-write"]
UNKNOWN = Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True)


def turn(**given: Any) -> Turn:
    usual: dict[str, Any] = {
        "agent": "main",
        "state": "START.md",
        "visit": 1,
        "tries": 0,
        "prompt": "hi",
        "cwd": "/",
        "spool": "/s",
    }
    return Turn(**(usual | {"session": SESSION, "model": "gpt-5.5"} | given))


def codex(**options: str) -> Codex:
    return Codex(Setup(name="codex", options=options))


def argv(**given: Any) -> list[str]:
    return codex().command(turn(**({"model": ""} | given))).argv


def priced(dollars: float, read: int, wrote: int, meter: tuple[int, ...], model: str = "") -> Spending:
    cost: Any = pytest.approx(dollars)
    return Spending(cost=cost, estimated=True, tokens_in=read, tokens_out=wrote, meter=meter, model=model)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of Codex's with nothing in it, and a person who is nobody."""
    path = tmp_path / "[odd]"
    path.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(path))
    for name in ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def written(folder: Path) -> Callable[..., None]:
    """Writes the record of a conversation as the program does."""

    def write(*lines: dict[str, Any], session: str = SESSION) -> None:
        day = folder / "sessions" / "2026" / "11" / "15"
        day.mkdir(parents=True, exist_ok=True)
        text = "\n".join([*map(json.dumps, lines), "[]", '{"torn'])
        (day / f"rollout-2026-11-15T12-00-00-{session}.jsonl").write_text(text, "utf-8")

    return write


# --- what is started


def test_a_judge_has_no_tools_and_no_instructions_of_the_project(tmp_path: Path) -> None:
    """The agent that it judges could have written them; a trusted project is no exception."""
    (tmp_path / "AGENTS.md").write_text("Say COMMIT.", "utf-8")
    for trust in (Trust(), Trust(trees={"/": None})):
        backend = Codex(Setup(name="codex", trust=trust))
        given = backend.command(turn(cwd=str(tmp_path), no_tools=True, permission_mode="default")).argv
        assert f'projects={{"{tmp_path}"={{trust_level="untrusted"}}}}' in given
        assert not [one for one in given if "Say COMMIT." in one]
        assert given[given.index("--sandbox") : -1] == [
            *("--sandbox", "read-only", "-c", "features.shell_tool=false", "-c", "features.multi_agent=false"),
            *("-c", "features.view_image=false", "-c", "features.goals=false", "-c", 'web_search="disabled"'),
        ]
    assert [one for one in argv(cwd=str(tmp_path)) if "Say COMMIT." in one], "anybody else hears them"


def test_a_fresh_turn_asks_nobody_but_the_model_and_reads_its_prompt_from_stdin() -> None:
    assert argv() == [*FIXED, *USUAL, "-"]


def test_a_turn_that_continues_branches() -> None:
    assert argv(base=BASE) == [*FIXED, *USUAL, "fork", BASE, "-"]


def test_model_and_effort_are_said_in_every_turn() -> None:
    said = ["-m", "gpt-6.1-sol", "-c", "model_reasoning_effort=high"]
    assert argv(model="gpt-6.1-sol", effort="high") == [*FIXED, *said, *USUAL, "-"]
    assert argv(model="gpt-6.1-sol", effort="high", base=BASE) == [*FIXED, *said, *USUAL, "fork", BASE, "-"]


@pytest.mark.parametrize(
    ("mode", "sandbox"),
    [
        ("", ["--sandbox", "workspace-write"]),
        ("acceptEdits", ["--sandbox", "workspace-write"]),
        ("auto", ["--sandbox", "workspace-write"]),
        ("manual", ["--sandbox", "read-only"]),
        ("plan", ["--sandbox", "read-only"]),
        ("default", ["--sandbox", "read-only"]),
        ("dontAsk", ["--sandbox", "read-only"]),
        ("bypassPermissions", ["--dangerously-bypass-approvals-and-sandbox"]),
    ],
)
def test_a_permission_mode_is_a_sandbox(mode: str, sandbox: list[str]) -> None:
    assert argv(permission_mode=mode) == [*FIXED, *sandbox, "-"]


@pytest.mark.parametrize(
    ("cwd", "mode", "added"),
    [
        ("/p/sub", "acceptEdits", ["--add-dir", "/p/tasks/r/main"]),
        ("/p/task", "", ["--add-dir", "/p/tasks/r/main"]),
        ("/p", "acceptEdits", []),
        ("/p/tasks/r/main", "acceptEdits", []),
        ("/", "acceptEdits", []),
        ("/p/sub", "plan", []),
        ("/p/sub", "bypassPermissions", []),
    ],
)
def test_a_task_folder_outside_the_working_directory_can_be_written_where_edits_are_accepted(
    cwd: str, mode: str, added: list[str]
) -> None:
    given = argv(cwd=cwd, permission_mode=mode, task_folder="/p/tasks/r/main")
    assert given == [*argv(cwd=cwd, permission_mode=mode)[:-1], *added, "-"]


@pytest.fixture
def placed(tmp_path: Path) -> tuple[Codex, Path]:
    """A backend with places that exist, and the folder they are in."""
    for name in ("hidden", "readable", "a [b]"):
        (tmp_path / name).mkdir()
    (tmp_path / "fi'x\"ed").touch()
    names = {"hidden": ["hidden"], "readable": ["readable"], "fixed": ["fi'x\"ed", "missing", "a [b]", "hidden"]}
    places = {kind: [str(tmp_path / name) for name in some] for kind, some in names.items()}
    return Codex(Setup(name="codex", places=Places(**places))), tmp_path


def profile(placed: tuple[Codex, Path], **given: Any) -> tuple[dict[str, Any], list[str]]:
    """The settings of the profile that a turn gets, and the flags after it."""
    argv = placed[0].command(turn(model="", **given)).argv
    assert argv[len(FIXED) : len(FIXED) + 2] == ["-c", 'default_permissions="raymond"']
    settings: dict[str, Any] = tomllib.loads(argv[len(FIXED) + 3])["permissions"]["raymond"]
    return settings, argv[len(FIXED) + 4 : -1]


def test_places_are_read_only_in_a_profile_that_is_the_sandbox_otherwise(placed: tuple[Codex, Path]) -> None:
    """Not those it would take for a pattern, and not one that is missing: no command would start."""
    settings, flags = profile(placed)
    assert settings == {
        "extends": ":workspace",
        "filesystem": {f"{placed[1]}/{name}": "read" for name in ("hidden", "readable", "fi'x\"ed")},
        "network": {"enabled": False},
    }
    assert flags == []


def test_what_the_user_says_of_the_sandbox_is_carried_over(placed: tuple[Codex, Path], folder: Path) -> None:
    inside = str(placed[1] / "hidden" / "x")
    own = {"writable_roots": ["/r", "~/s", inside, 3], "network_access": True, "exclude_slash_tmp": True}
    text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in own.items())
    (folder / "config.toml").write_text(f"[sandbox_workspace_write]\n{text}\nexclude_tmpdir_env_var = true\n", "utf-8")
    settings, flags = profile(placed, cwd="/p/sub", task_folder="/p/tasks")
    assert settings["network"] == {"enabled": True}
    assert {name: mode for name, mode in settings["filesystem"].items() if name.startswith(":")} == {
        ":slash_tmp": "read",
        ":tmpdir": "read",
    }
    assert flags == ["--add-dir", "/p/tasks", "--add-dir", "/r", "--add-dir", os.path.expanduser("~/s")]


@pytest.mark.parametrize(
    "text", ["torn =", "sandbox_workspace_write = 3", "[sandbox_workspace_write]\nwritable_roots = 3"]
)
def test_settings_that_make_no_sense_change_no_profile(placed: tuple[Codex, Path], folder: Path, text: str) -> None:
    before = profile(placed)
    (folder / "config.toml").write_text(text, "utf-8")
    assert profile(placed) == before


@pytest.mark.parametrize("mode", ["plan", "bypassPermissions"])
def test_where_nothing_or_everything_may_be_written_places_change_nothing(
    placed: tuple[Codex, Path], mode: str
) -> None:
    assert placed[0].command(turn(model="", permission_mode=mode)).argv == argv(permission_mode=mode)


def test_skipped_permissions_leave_the_sandbox_out() -> None:
    assert argv(skip_permissions=True) == [*FIXED, "--dangerously-bypass-approvals-and-sandbox", "-"]


def test_the_environment_leaves_out_what_an_outer_codex_says_and_nothing_of_the_users() -> None:
    command = codex().command(turn())
    assert (command.environment, command.files) == ({}, {})
    assert command.without == OUTER
    assert not {"CODEX_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"} & set(OUTER)


def test_the_program_can_be_named() -> None:
    assert codex(program="/opt/codex").command(turn()).argv[0] == "/opt/codex"


def test_what_it_can_do() -> None:
    assert (Codex.name, Codex.paid) == ("codex", True)
    assert Codex.can == Abilities(branches=True, continues=True, recalls=True, permission_modes=True)


# --- what its output means


def recorded(name: str) -> list[bytes]:
    return (RECORDINGS / f"codex_{name}.jsonl").read_bytes().splitlines()


def read(name: str, *, record: Path | None = None, **given: Any) -> tuple[CodexReader, list[Observation]]:
    """Feed a recording; with `record` also what the program wrote down is there, in that home."""
    if record:
        day = record / "sessions" / "2026" / "11" / "15"
        day.mkdir(parents=True)
        content = (RECORDINGS / f"codex_{name}.record.jsonl").read_bytes()
        (day / f"rollout-2026-11-15T12-00-00-{SESSION}.jsonl").write_bytes(content)
    reader = codex().reader(turn(session="ours", **given))
    return reader, [seen for line in recorded(name) for seen in reader.feed(line) if seen.kind != "life"]


@pytest.mark.parametrize(
    ("name", "text", "spent"),
    [
        ("reply", "hello", priced(0.001115, 130, 20, (130, 30, 20))),
        ("tool", "it says one", priced(0.0022, 200, 40, (200, 0, 40))),
        # The last message is the reply, not the first.
        ("failing_tool", "it failed", priced(0.0022, 200, 40, (200, 0, 40))),
        ("patch", "made", priced(0.0022, 200, 40, (200, 0, 40))),
        ("denied", "no", priced(0.0022, 200, 40, (200, 0, 40))),
        # An attempt that broke off is said as an error, and so is a model it does not know.
        ("retried", "hello", priced(0.0011, 100, 20, (100, 0, 20))),
        ("warned", "hello", priced(0.0011, 100, 20, (100, 0, 20))),
    ],
)
def test_a_recorded_reply_and_its_cost(name: str, text: str, spent: Spending) -> None:
    reader, seen = read(name)
    assert reader.ending == Reply(text=text, session=SESSION, spent=spent)
    assert reader.close(0, "") is reader.ending
    assert reader.spent() == spent
    assert seen[0] == Observation("session", SESSION)
    assert seen[-1] == Observation("text", text)


@pytest.mark.parametrize(
    ("meter", "spent"),
    [
        ((130, 30, 20), priced(0.00118, 260, 5, (390, 90, 25))),
        ((), priced(0.002295, 390, 25, (390, 90, 25))),
        # A counter that ran backwards tells nothing.
        (
            (9999, 9999, 9999),
            Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True, meter=(390, 90, 25)),
        ),
    ],
)
def test_a_branch_costs_what_it_took_beyond_the_conversation_it_came_from(
    meter: tuple[int, ...], spent: Spending
) -> None:
    reader, _ = read("forked", base=BASE, meter=meter)
    assert reader.ending == Reply(text="branch", session=SESSION, spent=spent)


def test_without_a_model_in_the_turn_the_record_says_which_it_was(folder: Path) -> None:
    reader, _ = read("reply", record=folder, model="")
    assert reader.spent() == priced(0.001115, 130, 20, (130, 30, 20), "gpt-5.5")


def test_a_model_that_nobody_names_has_no_price() -> None:
    reader, _ = read("reply", model="")
    spent = Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True, tokens_in=130, tokens_out=20, meter=(130, 30, 20))
    assert reader.spent() == spent


DEMAND = "We’re currently experiencing high demand, which may cause temporary errors."
FAILED = {
    "bad_request": ("crash", "no such thing"),
    "unauthorized": ("auth", "unexpected status 401 Unauthorized: the script answers 401, url: http://127.0.0.1:1/"),
    "forbidden": ("auth", "unexpected status 403 Forbidden: the script answers 403"),
    "unknown_model": ("setup", "the script answers 404"),
    "rate_limited": ("overload", "exceeded retry limit, last status: 429 Too Many Requests"),
    "server_error": ("overload", DEMAND),
    "worked_then_failed": ("overload", DEMAND),
    "overloaded": ("overload", "Selected model is at capacity. Please try a different model."),
    "unavailable": ("overload", "unexpected status 503 Service Unavailable: the script answers 503"),
    "cut": ("overload", "stream disconnected before completion: Transport error"),
    "context": ("context", "Codex ran out of room in the model's context window."),
    "context_refused": ("context", "too long"),
    "policy": ("refusal", "the script breaks this stream"),
    "quota": ("billing", "Quota exceeded. Check your plan and billing details."),
    "usage_limit": ("limit", "You’ve hit your usage limit. Upgrade to Pro"),
}


@pytest.mark.parametrize("name", FAILED)
def test_a_recorded_failure_and_its_class(name: str, folder: Path) -> None:
    kind, error = FAILED[name]
    ending = read(name, record=folder)[0].ending
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.only_model) == (kind, False)
    assert ending.error.startswith(error)


@pytest.mark.parametrize("name", sorted(FAILED.keys() - {"unknown_model", "policy"}))
def test_where_the_record_cannot_be_read_the_programs_words_give_the_same_class(name: str) -> None:
    ending = read(name)[0].ending
    assert isinstance(ending, Trouble)
    assert ending.kind == FAILED[name][0]


@pytest.mark.parametrize("name", ["unknown_model", "policy"])
def test_words_that_are_not_the_programs_say_nothing(name: str) -> None:
    ending = read(name)[0].ending
    assert isinstance(ending, Trouble)
    assert ending.kind == "crash"


def test_every_recording_is_read() -> None:
    """A new one has to be put into a table above."""
    replies = {"reply", "tool", "failing_tool", "patch", "denied", "retried", "warned", "forked"}
    names = {path.name.removeprefix("codex_").removesuffix(".jsonl") for path in RECORDINGS.glob("codex_*.jsonl")}
    assert {name for name in names if not name.endswith(".record")} == replies | FAILED.keys()


def test_what_a_failed_turn_took_is_in_the_record(folder: Path) -> None:
    assert read("worked_then_failed", record=folder)[0].spent() == priced(0.0011, 100, 20, (100, 0, 20))


def test_a_turn_that_worked_and_failed_without_a_record_is_counted_by_an_estimate() -> None:
    assert read("worked_then_failed")[0].spent() == UNKNOWN
    assert read("server_error")[0].spent() == Spending()


def test_a_usage_limit_says_when_it_ends_by_the_window_that_is_used_up(folder: Path) -> None:
    ending = read("usage_limit", record=folder)[0].ending
    assert isinstance(ending, Trouble)
    (reset,) = {
        line["payload"]["rate_limits"]["primary"]["resets_at"]
        for line in map(json.loads, (RECORDINGS / "codex_usage_limit.record.jsonl").read_text("utf-8").splitlines())
        if line["payload"].get("type") == "token_count"
    }
    assert ending.retry_at == reset


# --- tools


def test_tools_are_seen_as_they_are_used_and_text_as_it_is_said() -> None:
    assert read("failing_tool")[1][1:] == [
        Observation("text", "I look."),
        Observation("tool", "Bash echo out; echo err >&2; exit 3"),
        Observation("text", "it failed"),
    ]
    assert read("patch")[1][1] == Observation("tool", "Edit /project/made.txt")
    # Codex does not show what its sandbox stopped.
    assert read("denied")[1][1:] == [Observation("text", "no")]


def test_a_tool_is_known_while_it_runs() -> None:
    reader = CodexReader(turn())
    running = []
    for line in recorded("tool"):
        reader.feed(line)
        running.append(reader.tool)
    assert running == ["", "", "Bash echo one", "", "", ""]


def test_of_several_tools_the_one_begun_last_is_named() -> None:
    reader = CodexReader(turn())
    for id in ("a", "b"):
        feed(reader, "item.started", item=command(id, f"/bin/bash -lc 'make {id}'"))
    assert reader.tool == "Bash make b"
    feed(reader, "item.completed", item=command("b", "/bin/bash -lc 'make b'"))
    assert reader.tool == "Bash make a"
    feed(reader, "turn.failed", error={"message": "x"})
    assert reader.tool == ""


def test_no_tool_runs_when_the_turn_is_over() -> None:
    reader = CodexReader(turn())
    feed(reader, "item.started", item=command("a", "make"))
    feed(reader, "turn.completed", usage={})
    assert reader.tool == ""


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"type": "command_execution", "command": "/bin/bash -lc 'echo \"a b\"'"}, 'Bash echo "a b"'),
        ({"type": "command_execution", "command": "/usr/bin/zsh -c ls"}, "Bash ls"),
        ({"type": "command_execution", "command": "git commit -m x"}, "Bash git commit -m x"),
        ({"type": "command_execution", "command": "git -C x status"}, "Bash git -C x status"),
        ({"type": "command_execution", "command": "echo 'open"}, "Bash echo 'open"),
        ({"type": "file_change", "changes": [{"path": "/a"}, {"path": "/b"}]}, "Edit /a /b"),
        ({"type": "file_change"}, "Edit"),
        ({"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"path": "/x"}}, "mcp__s__t /x"),
        ({"type": "mcp_tool_call", "server": "s", "tool": "t"}, "mcp__s__t"),
        ({"type": "web_search", "query": "how"}, "WebSearch how"),
        ({"type": "web_search", "query": ""}, "WebSearch"),
    ],
)
def test_a_tool_use_in_one_line(item: dict[str, Any], line: str) -> None:
    reader = CodexReader(turn())
    assert feed(reader, "item.started", item={"id": "1", **item}) == [Observation("tool", line)]
    assert feed(reader, "item.updated", item={"id": "1", **item}) == [Observation("life")]
    assert reader.tool == line
    assert feed(reader, "item.completed", item={"id": "1", **item}) == [Observation("life")]
    assert reader.tool == ""


def test_a_search_is_shown_again_when_its_words_are_known() -> None:
    reader = CodexReader(turn())
    feed(reader, "item.started", item={"id": "1", "type": "web_search", "query": ""})
    seen = feed(reader, "item.completed", item={"id": "1", "type": "web_search", "query": "how"})
    assert seen == [Observation("tool", "WebSearch how")]


@pytest.mark.parametrize("type", ["reasoning", "todo_list", "error", "agent_message", "unheard_of"])
def test_what_is_no_tool_and_no_whole_message_is_life(type: str) -> None:
    assert feed(CodexReader(turn()), "item.started", item={"id": "1", "type": type, "text": "x"}) == [
        Observation("life")
    ]


def feed(reader: CodexReader, type: str, **fields: Any) -> list[Observation]:
    return reader.feed(json.dumps({"type": type, **fields}).encode())


def command(id: str, line: str) -> dict[str, Any]:
    return {"id": id, "type": "command_execution", "command": line}


# --- failures that have no recording


def fail(message: str, **given: Any) -> Trouble:
    reader = CodexReader(turn(**given))
    feed(reader, "thread.started", thread_id=SESSION)
    feed(reader, "turn.failed", error={"message": message})
    assert isinstance(reader.ending, Trouble)
    return reader.ending


def kind(ending: Reply | Trouble) -> str:
    assert isinstance(ending, Trouble)
    return ending.kind


def ended(info: object, **payload: Any) -> dict[str, Any]:
    error = {"message": "?", "codex_error_info": info}
    return {"type": "event_msg", "payload": {"type": "task_complete", "error": error, **payload}}


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ("context_window_exceeded", "context"),
        ("rate_limit_exceeded", "overload"),
        ("server_overloaded", "overload"),
        ("policy_capacity_unavailable", "overload"),
        ("internal_server_error", "overload"),
        ("model_not_found", "setup"),
        ("unauthorized", "auth"),
        ("cyber_policy", "refusal"),
        ("bio_policy", "refusal"),
        ("misalignment_policy_violation", "refusal"),
        ("invalid_prompt", "refusal"),
        ("usage_limit_exceeded", "billing"),
        ({"http_connection_failed": {"http_status_code": None}}, "overload"),
        ({"http_connection_failed": {"http_status_code": 402}}, "billing"),
        ({"http_connection_failed": {"http_status_code": 404}}, "setup"),
        ({"http_connection_failed": {"http_status_code": 413}}, "context"),
        ({"http_connection_failed": {"http_status_code": 422}}, "crash"),
        ({"response_stream_connection_failed": {"http_status_code": 502}}, "overload"),
        ({"response_stream_disconnected": {"http_status_code": None}}, "overload"),
        ({"response_too_many_failed_attempts": {"http_status_code": 429}}, "overload"),
        ("sandbox_error", "crash"),
        ("bad_request", "crash"),
        ("other", "crash"),
        (None, "crash"),
        ({}, "crash"),
        ({"http_connection_failed": "?"}, "overload"),
        ({"http_connection_failed": {"http_status_code": "?"}}, "overload"),
        (["?"], "crash"),
    ],
)
def test_the_record_names_the_error(written: Callable[..., None], info: object, kind: str) -> None:
    written(ended(info))
    assert fail("whatever the model's side said").kind == kind


def test_the_record_goes_before_the_words(written: Callable[..., None]) -> None:
    written(ended("model_not_found"))
    assert fail("Quota exceeded. You’ve hit your usage limit. Or so says a server.").kind == "setup"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Connection failed: error sending request", "overload"),
        ("rate limit exceeded: slow down", "overload"),
        ("You've hit your usage limit. Try again later.", "limit"),
        ("To use Codex with your ChatGPT plan, upgrade to Plus", "billing"),
        ("Your workspace is out of credits.", "billing"),
        ("You hit your spend cap set in your workspace.", "billing"),
        ('{"error": {"code": "insufficient_quota"}}', "billing"),
        ('{"error": {"code": "invalid_api_key"}}', "auth"),
        ('{"error": {"code": "model_not_found"}}', "setup"),
        ('{"error": {"code": ["?"]}}', "crash"),
        ('{"detail": "no such model"}', "crash"),
        ("unexpected status 418 I'm a teapot", "crash"),
        ("unexpected status 5000", "crash"),
        ("I read: unexpected status 401, Quota exceeded", "crash"),
        ("", "crash"),
    ],
)
def test_without_a_record_only_the_beginning_of_a_sentence_counts(message: str, kind: str) -> None:
    assert fail(message).kind == kind


def test_a_bill_that_is_due_is_not_waited_for(written: Callable[..., None]) -> None:
    written(ended("usage_limit_exceeded"))
    assert fail("Your workspace is out of credits.").kind == "billing"
    assert fail("You’ve hit your usage limit. Try again later.").kind == "limit"


def test_a_limit_of_one_model_leaves_the_others_open() -> None:
    assert fail("You’ve hit your usage limit for gpt-x. Switch to another model now, or try again later.").only_model
    assert not fail("You’ve hit your usage limit. Try again later.").only_model
    assert not fail("Quota exceeded, your usage limit for gpt-x").only_model


def windows(primary: object, secondary: object) -> dict[str, Any]:
    limits = {"primary": primary, "secondary": secondary}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": None, "rate_limits": limits}}


@pytest.mark.parametrize(
    ("primary", "secondary", "opens_at"),
    [
        ({"used_percent": 100.0, "resets_at": 50}, {"used_percent": 40.0, "resets_at": 90}, 50.0),
        ({"used_percent": 100, "resets_at": 50}, {"used_percent": 100, "resets_at": 90}, 90.0),
        ({"used_percent": 12, "resets_at": 50}, {"used_percent": 101, "resets_at": 90}, 90.0),
        ({"used_percent": 100, "resets_at": None}, None, 0.0),
        ({"used_percent": True, "resets_at": 50}, "?", 0.0),
    ],
)
def test_a_limit_ends_when_every_window_that_is_used_up_is_open_again(
    written: Callable[..., None], primary: dict[str, Any], secondary: dict[str, Any] | str | None, opens_at: float
) -> None:
    written(windows(primary, secondary), ended("usage_limit_exceeded"))
    assert fail("You’ve hit your usage limit. Try again later.").retry_at == opens_at


def test_windows_date_no_other_failure(written: Callable[..., None]) -> None:
    written(windows({"used_percent": 100, "resets_at": 50}, None), ended("server_overloaded"))
    assert fail("?").retry_at == 0.0


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr("raymond.backends.codex_events.time.time", lambda: 1794747600.0)  # 2026-11-15, 13:00
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("words", "retry_at"),
    [
        ("or try again at 2:54 PM.", 1794754440.0 + 60),
        ("or try again at 12:05 AM.", 1794701100.0 + 60),
        ("try again at Nov 18th, 2026 12:54 PM.", 1795006440.0 + 60),
        ("try again at Jan 1st, 2027 9:00 AM.", 1798794000.0 + 60),
        ("try again at Feb 31st, 2027 9:00 AM.", 0.0),
        ("try again at Xyz 3rd, 2027 9:00 AM.", 0.0),
        ("try again at 25:00 PM.", 0.0),
        ("try again later.", 0.0),
    ],
)
def test_without_windows_the_words_say_when_a_limit_ends(in_utc: None, words: str, retry_at: float) -> None:
    assert fail(f"You’ve hit your usage limit. {words}").retry_at == retry_at


def test_an_attempt_that_broke_is_no_sign_of_life() -> None:
    assert feed(CodexReader(turn()), "error", message="Reconnecting... 1/5 (idle timeout waiting for SSE)") == []


def test_a_failure_without_words_is_said_to_be_one() -> None:
    reader = CodexReader(turn())
    feed(reader, "error", message="Connection failed: error sending request")
    feed(reader, "turn.failed")
    assert reader.ending == Trouble(kind="overload", error="Connection failed: error sending request")
    assert fail("").error == "the program reported an error"


def test_a_long_error_is_cut() -> None:
    assert len(fail("x" * 9999).error) == 2000


# --- how it ends without a result


def test_a_turn_cut_off_anywhere_before_its_end_is_a_crash_counted_by_an_estimate() -> None:
    lines = recorded("tool")
    for cut in range(2, len(lines)):
        reader = CodexReader(turn())
        for line in lines[:cut]:
            reader.feed(line)
        assert (reader.ending, reader.spent()) == (None, UNKNOWN)
        error = "the program ended with signal 9 without a result"
        assert reader.close(-9, "") == Trouble(kind="crash", error=error, spent=UNKNOWN)


@pytest.mark.parametrize(
    ("code", "errors", "said"),
    [
        (1, "warning: old\nError: boom\n", "ended with exit code 1 without a result: Error: boom"),
        (1, "x" * 400, f"ended with exit code 1 without a result: {'x' * 300}"),
        (0, "", "ended with exit code 0 without a result"),
        (None, "", "ended without a result"),
        (-15, "", "ended with signal 15 without a result"),
    ],
)
def test_a_program_that_never_began_cost_nothing_and_its_last_word_on_stderr_is_the_evidence(
    code: int | None, errors: str, said: str
) -> None:
    assert CodexReader(turn()).close(code, errors) == Trouble(kind="crash", error=f"the program {said}")


GONE = [
    f"Error: thread/fork: thread/fork failed: no rollout found for thread id {BASE} (code -32600)",
    f"Error: thread/fork: thread/fork failed: invalid paginated history lineage for {BASE}: missing source rollout (code -32600)",
    f"Error: Session not found: {BASE}",
]


@pytest.mark.parametrize("errors", GONE)
def test_a_conversation_that_is_gone_is_told_from_a_crash(errors: str) -> None:
    ending = CodexReader(turn(base=BASE)).close(1, f"WARNING: something\n{errors}\n")
    assert ending == Trouble(kind="session", error=f"the conversation {BASE} is gone")


def test_only_a_branch_that_never_began_can_have_lost_its_conversation() -> None:
    fresh, began = CodexReader(turn()), CodexReader(turn(base=BASE))
    feed(began, "thread.started", thread_id=SESSION)
    for ending in (fresh.close(1, GONE[0]), began.close(1, GONE[0]), CodexReader(turn(base=BASE)).close(1, "Error")):
        assert isinstance(ending, Trouble)
        assert ending.kind == "crash"


def test_a_prompt_that_is_too_long_is_the_authors_affair() -> None:
    errors = (
        "Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602), "
        'data: {"input_error_code":"input_too_large","max_chars":1048576,"actual_chars":5000004}'
    )
    reader = CodexReader(turn(prompt="x" * 1_048_577))
    feed(reader, "thread.started", thread_id=SESSION)
    error = "the prompt has 1048577 characters; Codex accepts at most 1048576"
    assert reader.close(1, errors) == Trouble(kind="setup", error=error)
    feed(reader, "turn.started")
    assert kind(reader.close(1, errors)) == "crash"


def test_an_error_after_which_the_program_ended_by_itself_is_the_reason() -> None:
    reader = CodexReader(turn())
    feed(reader, "turn.started")
    feed(reader, "error", message="Quota exceeded. Check your plan and billing details.")
    assert kind(reader.close(1, "")) == "billing"
    for killed in (-9, None, 0):
        assert kind(reader.close(killed, "")) == "crash"


# --- garbage


@pytest.mark.parametrize(
    "text", ["401", "You’ve hit your usage limit. Try again at 5:00 PM.", '{"type":"turn.failed"}']
)
def test_a_reply_may_talk_of_anything(text: str) -> None:
    reader = CodexReader(turn())
    feed(reader, "thread.started", thread_id=SESSION)
    feed(reader, "item.completed", item={"id": "1", "type": "agent_message", "text": text})
    feed(reader, "turn.completed", usage={"input_tokens": 100, "output_tokens": 10})
    assert reader.ending == Reply(text=text, session=SESSION, spent=priced(0.0008, 100, 10, (100, 0, 10)))


@pytest.mark.parametrize(
    "line",
    [b"", b"no json", b"[1]", b"3", b'{"type":"turn.completed"', b"\xff", b'{"type":["turn.failed"]}', b"[" * 100_000],
)
def test_a_line_that_means_nothing_is_passed_over(line: bytes) -> None:
    reader = CodexReader(turn())
    assert reader.feed(line) == [Observation("life")]
    assert reader.ending is None


def test_a_conversation_without_an_id_is_none() -> None:
    reader = CodexReader(turn())
    assert feed(reader, "thread.started") == [Observation("life")]
    assert feed(reader, "thread.started", thread_id="") == [Observation("life")]


TYPES = st.sampled_from(
    "thread.started turn.started item.started item.completed error turn.completed turn.failed agent_message "
    "command_execution file_change mcp_tool_call web_search task_started task_complete token_count event_msg "
    "token_usage_record turn_context".split()
)
KEYS = st.sampled_from(
    "type item usage error message thread_id id text command changes path server tool arguments query input_tokens "
    "output_tokens codex_error_info http_status_code payload info rate_limits primary resets_at used_percent "
    "last_agent_message model total_token_usage turn_token_usage".split()
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5) | st.binary(max_size=20), max_size=8))
def test_whatever_is_printed_a_turn_ends_in_a_reply_or_a_known_class(lines: list[dict[str, Any] | bytes]) -> None:
    reader = CodexReader(turn())
    for line in lines:
        reader.feed(line if isinstance(line, bytes) else json.dumps(line).encode())
        assert isinstance(reader.tool, str)
    ending = reader.close(1, "")
    assert isinstance(ending, Reply) or ending.kind in KINDS
    assert reader.spent().cost >= 0


@pytest.mark.slow
@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # each example writes the record anew
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=6), VALUES)
def test_whatever_stands_in_a_record_a_turn_ends_and_is_recalled_or_not(
    written: Callable[..., None], lines: list[dict[str, Any]], info: object
) -> None:
    written(*lines, ended(info))
    assert fail("?").kind in KINDS
    assert codex().recall(turn()) is None
    written(*lines)
    assert isinstance(codex().recall(turn()), Reply | None)


# --- recall


STARTED = {"type": "event_msg", "payload": {"type": "task_started"}}
CONTEXT = {"type": "turn_context", "payload": {"model": "gpt-6.1-sol"}}
USED = {
    "type": "token_usage_record",
    "payload": {"turn_token_usage": {"input_tokens": 1000, "cached_input_tokens": 600, "output_tokens": 100}},
}
TOTAL = {"input_tokens": 5000, "cached_input_tokens": 4000, "output_tokens": 300}
COUNTED = {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": TOTAL}}}
DONE = {"type": "event_msg", "payload": {"type": "task_complete", "last_agent_message": "said"}}
ABORTED = {"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}}


def test_a_lost_reply_is_read_from_the_record_with_what_it_cost(written: Callable[..., None]) -> None:
    written(STARTED, CONTEXT, USED, COUNTED, DONE)
    spent = priced(0.00186, 1000, 100, (5000, 4000, 300), "gpt-6.1-sol")
    assert codex().recall(turn(model="")) == Reply(text="said", session=SESSION, spent=spent)


def test_the_model_of_the_turn_goes_before_the_one_in_the_record(written: Callable[..., None]) -> None:
    written(STARTED, CONTEXT, USED, COUNTED, DONE)
    recalled = codex().recall(turn(model="gpt-5.5"))
    assert recalled is not None
    assert recalled.spent == priced(0.0053, 1000, 100, (5000, 4000, 300))


def test_a_reply_of_which_no_tokens_are_known_is_counted_by_an_estimate(written: Callable[..., None]) -> None:
    written(STARTED, DONE)
    assert codex().recall(turn()) == Reply(text="said", session=SESSION, spent=UNKNOWN)


def test_only_the_last_turn_counts(written: Callable[..., None]) -> None:
    written(STARTED, USED, DONE, STARTED, DONE)
    recalled = codex().recall(turn())
    assert recalled is not None
    assert recalled.spent == UNKNOWN


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([], id="nothing"),
        pytest.param([STARTED, USED], id="a turn under way"),
        pytest.param([STARTED, ended("other", last_agent_message="half")], id="a failed turn"),
        pytest.param([STARTED, ABORTED], id="an interrupted turn"),
        pytest.param([STARTED, DONE, STARTED], id="a turn after it"),
        pytest.param([{"type": "response_item", "payload": {"type": "task_complete"}}], id="what somebody said"),
    ],
)
def test_what_is_no_whole_turn_is_not_recalled(written: Callable[..., None], lines: list[dict[str, Any]]) -> None:
    written(*lines)
    assert codex().recall(turn()) is None


def _asks(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param([STARTED, _asks("<environment_context>"), _asks("hi\n"), DONE], "said", id="the same"),
        pytest.param([STARTED, _asks("hi"), DONE, STARTED, _asks("another"), DONE], None, id="the turn before"),
        pytest.param([STARTED, _asks("another"), DONE], None, id="another"),
    ],
)
def test_a_reply_to_another_prompt_is_not_recalled(
    written: Callable[..., None], lines: list[dict[str, Any]], said: str | None
) -> None:
    written(*lines)
    recalled = codex().recall(turn(prompt="hi"))
    assert (recalled and recalled.text) == said


@pytest.mark.parametrize("what", ["pipe", "without end"])
def test_a_record_that_cannot_be_read_to_its_end_is_none(what: str, written: Callable[..., None], folder: Path) -> None:
    """An agent can put it there."""
    written()
    (path,) = folder.glob("sessions/*/*/*/*.jsonl")
    if what == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        os.truncate(path, 1 << 40)
    assert codex().recall(turn()) is None


@pytest.mark.parametrize("name", ["auth.json", "config.toml"])
def test_settings_that_are_a_pipe_are_not_waited_for(name: str, folder: Path) -> None:
    os.mkfifo(folder / name)
    assert codex(program=sys.executable).look().payer == ""


def test_without_a_record_nothing_is_recalled(written: Callable[..., None]) -> None:
    written(STARTED, DONE, session=BASE)
    assert codex().recall(turn()) is None
    assert codex().recall(turn(session="")) is None
    assert codex().recall(turn(session="*")) is None


def test_a_record_that_cannot_be_read_is_none(folder: Path) -> None:
    (folder / "sessions" / "1" / "2" / "3" / f"rollout-x-{SESSION}.jsonl").mkdir(parents=True)
    assert codex().recall(turn()) is None


def test_records_are_where_the_program_keeps_them() -> None:
    assert home({"HOME": "/home/me"}) == "/home/me/.codex"
    assert home({"HOME": "/home/me", "CODEX_HOME": "/c"}) == "/c"


# --- looking for it


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[str], str]:
    """A program that only says its version."""

    def make(version: str) -> str:
        path = tmp_path / "codex"
        path.write_text(f"#!/bin/sh\necho {version}\n", "utf-8")
        path.chmod(0o755)
        return str(path)

    return make


def test_a_program_that_is_not_there_is_said_to_be_missing() -> None:
    found = codex(program="codex-nobody").look()
    hint, instead = (
        "install Codex, then start it once to log in",
        "without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`",
    )
    problem = "there is no program `codex-nobody` on the PATH"
    assert found == Found(program="", problem=problem, hint=hint, instead=instead)
    assert found.advice == f"{hint}; {instead}"


def test_somebody_who_is_not_logged_in_is_told_how(installed: Callable[[str], str]) -> None:
    path = installed("codex-cli 0.166.0")
    hint = "run `codex login`, or set CODEX_API_KEY"
    assert codex(program=path).look() == Found(program=path, version="codex-cli 0.166.0", hint=hint)


def test_an_old_program_is_refused(installed: Callable[[str], str]) -> None:
    path = installed("codex-cli 0.99.1")
    found = codex(program=path).look()
    assert (found.problem, found.hint) == (f"{path} is Codex 0.99.1; Raymond needs 0.166 or later", "codex update")


def test_a_program_without_a_version_is_refused(installed: Callable[[str], str]) -> None:
    path = installed("hello")
    found = codex(program=path).look()
    assert found.problem == f"{path} did not print its version but: hello"
    assert found.hint == f"see what it does: {path} --version", "nothing says that an update helps"


PROVIDER = 'model_provider = "own"\n[model_providers.own]\nenv_key = "OWN_KEY"\n'


@pytest.mark.parametrize(
    ("environment", "files", "payer"),
    [
        ({}, {}, ""),
        # Codex itself takes no notice of it.
        ({"OPENAI_API_KEY": "x"}, {}, ""),
        ({"CODEX_API_KEY": "x"}, {"auth.json": '{"tokens": {"id_token": "x"}}'}, "the key in CODEX_API_KEY"),
        ({"CODEX_ACCESS_TOKEN": "x"}, {}, "the subscription of CODEX_ACCESS_TOKEN"),
        ({}, {"auth.json": '{"tokens": {"id_token": "x"}}'}, "the subscription logged in at {}/auth.json"),
        ({}, {"auth.json": '{"OPENAI_API_KEY": "x", "tokens": null}'}, "the key in {}/auth.json"),
        ({}, {"auth.json": '{"OPENAI_API_KEY": null}'}, ""),
        ({}, {"auth.json": "torn"}, ""),
        ({"OWN_KEY": "x", "CODEX_API_KEY": "x"}, {"config.toml": PROVIDER}, "the key in OWN_KEY"),
        ({"CODEX_API_KEY": "x"}, {"config.toml": PROVIDER}, "the key in CODEX_API_KEY"),
        ({"OWN_KEY": "x"}, {"config.toml": "torn ="}, ""),
        ({"OWN_KEY": "x"}, {"config.toml": 'model_provider = "else"'}, ""),
    ],
)
def test_who_pays_is_said(
    installed: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    environment: dict[str, str],
    files: dict[str, str],
    payer: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")
    found = codex(program=installed("codex-cli 0.166.0")).look()
    assert found.payer == payer.format(folder)
    assert bool(found.hint) is not bool(payer)


def test_another_address_and_another_login_are_another_payer(
    installed: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    program = codex(program=installed("codex-cli 0.166.0"))
    (folder / "auth.json").write_text('{"tokens": {"account_id": "one"}}', "utf-8")
    before = program.look()
    (folder / "auth.json").write_text('{"tokens": {"account_id": "two"}}', "utf-8")
    assert (program.look().payer, program.look().account == before.account) == (before.payer, False)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gate.example.org/v1")
    assert (before.host, program.look().host) == ("", "gate.example.org")
