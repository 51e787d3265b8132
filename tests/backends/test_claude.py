"""Claude Code as a backend, without the program: what would be started, and what its recorded output means."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raymond.backends import Carrier, Observation, Places, Reply, Setup, Trouble, Turn
from raymond.backends.claude import Claude, sessions
from raymond.backends.claude_stream import StreamReader
from raymond.language.policy import Policy
from raymond.machine import limits
from raymond.machine.events import RunStarted
from raymond.machine.inputs import Spending
from raymond.machine.limits import Rights
from raymond.machine.prices import UNKNOWN_TURN
from raymond.store.trust import Trust

RECORDINGS = Path(__file__).parents[1] / "e2e" / "recordings"
OPUS = "claude-opus-5-5"
SESSION = "11111111-1111-5111-8111-111111111111"
BASE = "22222222-2222-5222-8222-222222222222"
FIXED = ["claude", "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
FIXED += ["--setting-sources", "user", "--strict-mcp-config"]
DENIED = "AskUserQuestion,EnterPlanMode,ExitPlanMode,CronCreate,CronDelete,CronList,ScheduleWakeup,RemoteTrigger"
DENIED += ",Monitor,ListAgents,ListPeers,SendMessage,PushNotification"
USUAL = ["--permission-mode", "acceptEdits", "--disallowedTools", DENIED]


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
    return Turn(**(usual | {"session": SESSION} | given))


def argv(backend: Claude | None = None, **given: Any) -> list[str]:
    return (backend or Claude(Setup(name="claude"))).command(turn(**given)).argv


# --- what is started


def test_a_fresh_turn_begins_a_session_under_the_id_that_is_in_the_journal() -> None:
    assert argv() == [*FIXED, "--session-id", SESSION, *USUAL]


def test_a_turn_that_continues_branches() -> None:
    assert argv(base=BASE) == [*FIXED, "--session-id", SESSION, "--resume", BASE, "--fork-session", *USUAL]


def test_model_and_effort_are_said_in_every_turn() -> None:
    said = ["--model", "sonnet", "--effort", "high"]
    assert argv(model="sonnet", effort="high") == [*FIXED, "--session-id", SESSION, *said, *USUAL]
    branch = ["--resume", BASE, "--fork-session"]
    assert argv(model="sonnet", effort="high", base=BASE) == [*FIXED, "--session-id", SESSION, *branch, *said, *USUAL]


def test_a_cap_is_handed_on() -> None:
    assert argv(cap=0.25) == [*FIXED, "--session-id", SESSION, "--max-budget-usd", "0.2500", *USUAL]


def test_rights_are_said_as_the_program_wants_them() -> None:
    given = argv(permission_mode="plan", allowed_tools=("Read", "Bash(make test:*)"), disallowed_tools=("WebFetch",))
    assert given[len(FIXED) + 2 :] == [
        *("--permission-mode", "plan"),
        *("--disallowedTools", DENIED, "--disallowedTools", "WebFetch"),
        *("--allowedTools", "Read", "--allowedTools", "Bash(make test:*)"),
    ]


def test_a_judge_has_no_tools_and_no_settings_of_the_project() -> None:
    trusted = Claude(Setup(name="claude", trust=Trust(trees={"/": None})))
    given = argv(trusted, no_tools=True, permission_mode="default", model="haiku")
    assert given == [
        *FIXED,
        *("--session-id", SESSION, "--model", "haiku", "--permission-mode", "default"),
        *("--disallowedTools", DENIED, "--tools", ""),
    ]
    assert "--strict-mcp-config" in FIXED


# --- places


def permissions(places: Places, **given: Any) -> dict[str, list[str]]:
    """What the settings of a turn say."""
    said = argv(Claude(Setup(name="claude", places=places)), **given)
    found: dict[str, list[str]] = json.loads(said[said.index("--settings") + 1])["permissions"]
    return found


def test_hidden_folders_can_be_neither_read_nor_changed_and_the_others_only_not_changed() -> None:
    assert permissions(Places(hidden=["/s/projects"], readable=["/s/flows/1"], fixed=["/p/config.toml"])) == {
        "deny": ["Read(//s/projects)", "Edit(//s/projects)", "Edit(//s/flows/1)", "Edit(//p/config.toml)"],
        "allow": ["Read(//s/flows/1)"],
    }


def test_places_stay_closed_when_permissions_are_skipped() -> None:
    given = argv(Claude(Setup(name="claude", places=Places(fixed=["/p/c"]))), skip_permissions=True)
    assert given[len(FIXED) + 2 :] == [
        "--dangerously-skip-permissions",
        *("--disallowedTools", DENIED),
        *("--settings", '{"permissions":{"deny":["Edit(//p/c)"]}}'),
    ]


def test_the_task_folder_is_one_more_directory_to_work_in() -> None:
    assert permissions(Places(), task_folder="/p/[1]/tasks") == {"additionalDirectories": ["/p/[1]/tasks"]}


def test_a_place_behind_a_link_is_named_both_ways(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    denied = permissions(Places(fixed=[f"{tmp_path}/link/x"]))["deny"]
    assert denied == [f"Edit(/{tmp_path}/link/x)", f"Edit(/{tmp_path}/real/x)"]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/a b,c", "Edit(//a b,c)"),
        ("/a[1]", r"Edit(//a\\[1\\])"),
        ("/*/!#", r"Edit(//\\*/\\!\\#)"),
        ("/what?", "Edit(//what?)"),
        ("/(x)", r"Edit(//\(x\))"),
        ("/a\\b", r"Edit(//a\\\\b)"),
        ("/ a  ", r"Edit(// a\\ \\ )"),
        ("/\"é'", "Edit(//\"é')"),
    ],
)
def test_no_character_of_a_path_means_anything_in_a_rule(path: str, rule: str) -> None:
    assert permissions(Places(fixed=[path])) == {"deny": [rule]}


@pytest.mark.parametrize(
    ("name", "given", "hinted"),
    [
        ("Write", {"file_path": "/s/hidden/x"}, False),
        ("Write", {"file_path": "/s/hidden"}, False),
        ("Bash", {"command": "rm -rf /s/fixed; make"}, False),
        ("Write", {"file_path": "/s/flows/CHECK.sh"}, False),
        ("Write", {"file_path": "/s/hidden2/x"}, True),
        ("Bash", {"command": "make"}, True),
        ("Write", {"file_path": "/p/.mcp.json"}, False),
        ("Edit", {"file_path": "/p/.claude/settings.json"}, False),
        ("Write", {"file_path": "/p/.git/hooks/pre-commit"}, False),
        ("Write", {"file_path": "/home/ada/.bashrc"}, False),
        ("Write", {"file_path": "/p/.github/workflows/ci.yml"}, True),
        ("Read", {"file_path": "/p/.git/config"}, True),
    ],
)
def test_no_flag_is_offered_for_a_place_that_none_opens(name: str, given: dict[str, str], hinted: bool) -> None:
    places = Places(hidden=["/s/hidden"], readable=["/s/flows"], fixed=["/s/fixed"])
    denial = {"tool_name": name, "tool_use_id": "1", "tool_input": given}
    line = json.dumps({"type": "system", "subtype": "permission_denied", **denial}).encode()
    (seen,) = Claude(Setup(name="claude", places=places)).reader(turn()).feed(line)
    assert (seen.kind, bool(seen.allow)) == ("denied", hinted)


# --- the environment


def test_the_environment_keeps_what_is_the_users_and_leaves_out_what_an_outer_claude_code_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CLAUDE_CODE_MAX_RETRIES", raising=False)
    command = Claude(Setup(name="claude")).command(turn())
    assert command.environment == {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_MAX_RETRIES": "2"}
    assert command.without == ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "7")
    assert Claude(Setup(name="claude")).command(turn()).environment == {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}


@pytest.mark.parametrize(
    ("user", "skip", "told"), [(0, True, True), (0, False, False), (1000, True, False)], ids=["root", "asks", "user"]
)
def test_only_root_who_skips_permissions_says_it_is_a_sandbox(
    monkeypatch: pytest.MonkeyPatch, user: int, skip: bool, told: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert ("IS_SANDBOX" in Claude(Setup(name="claude")).command(turn(skip_permissions=skip)).environment) is told


# --- rights


def narrowed(policy: Policy, **given: Any) -> Rights:
    """The rights of a turn in a run that a person started with `given`."""
    empty = dict.fromkeys(
        ("workflow_id", "key", "name", "scope_dir", "source", "entry", "cwd", "budget_from", "version"), ""
    )
    start = RunStarted(**empty | given)
    return limits.narrowed_rights(limits.rights_of(start), policy)


def test_without_a_word_edits_are_accepted_and_nothing_else() -> None:
    assert narrowed(Policy()) == Rights("acceptEdits", (), (), False)


def test_a_state_narrows_what_the_person_gave() -> None:
    given = {"allowed_tools": ["Bash(ls:*)", "WebFetch"], "permission_mode": "acceptEdits"}
    policy = Policy(permission_mode="plan", allowed_tools=("WebFetch",), disallowed_tools=("Bash",))
    assert narrowed(policy, **given) == Rights("plan", ("WebFetch",), ("Bash",), False)


def test_skipped_permissions_hold_but_where_a_state_is_narrower() -> None:
    assert narrowed(Policy(), skip_permissions=True).skip
    assert not narrowed(Policy(permission_mode="default"), skip_permissions=True).skip


# --- what its output means


def read(name: str) -> tuple[StreamReader, list[Observation]]:
    reader = StreamReader(turn())
    lines = (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines()
    return reader, [seen for line in lines for seen in reader.feed(line) if seen.kind != "life"]


@pytest.mark.parametrize(
    ("name", "text", "spent"),
    [
        ("reply", "hello", Spending(model=OPUS, cost=0.00134, tokens_in=1210, tokens_out=5)),
        ("partial", "hello", Spending(model=OPUS, cost=0.0008, tokens_in=100, tokens_out=20)),
        ("tool", "it says one", Spending(model=OPUS, cost=0.0016, tokens_in=200, tokens_out=40)),
        ("failing_tool", "it failed", Spending(model=OPUS, cost=0.0016, tokens_in=200, tokens_out=40)),
        ("denied", "I was not allowed to", Spending(model=OPUS, cost=0.0016, tokens_in=200, tokens_out=40)),
        # The total of the session is 0.0016: what it was branched from is in it, and was paid before.
        ("forked", "branch", Spending(model=OPUS, cost=0.0008, tokens_in=100, tokens_out=20)),
        ("retried", "hello", Spending(model=OPUS, cost=0.0008, tokens_in=100, tokens_out=20)),
        ("usage_allowed", "hello", Spending(model="claude-sonnet-5-5", cost=0.0004, tokens_in=100, tokens_out=20)),
    ],
)
def test_a_recorded_reply_and_its_cost(name: str, text: str, spent: Spending) -> None:
    reader, _ = read(name)
    assert reader.ending == Reply(text=text, session=SESSION, spent=spent)
    assert reader.close(0, "") == reader.ending
    assert reader.spent() == spent


@pytest.mark.parametrize(
    ("name", "kind", "error", "retry_at"),
    [
        ("usage_limit", "limit", "You've hit your limit · resets 1pm (UTC)", 1794747600.0),
        ("overloaded", "overload", "API Error: 529 the script answers 529.", 0.0),
        ("rate_limited", "overload", "API Error: Request rejected (429) · the script answers 429", 0.0),
        ("unauthorized", "auth", "Failed to authenticate. API Error: 401 the script answers 401", 0.0),
        ("unknown_model", "setup", "There's an issue with the selected model (claude-nobody-1).", 0.0),
        ("max_turns", "crash", "Reached maximum number of turns (1)", 0.0),
        ("max_budget", "cap", "Reached maximum budget ($0.5)", 0.0),
    ],
)
def test_a_recorded_failure_and_its_class(name: str, kind: str, error: str, retry_at: float) -> None:
    ending = read(name)[0].ending
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.retry_at) == (kind, retry_at)
    assert ending.error.startswith(error)


def test_what_a_failed_turn_cost_is_known() -> None:
    assert read("max_budget")[0].spent().cost == 4.0004
    assert read("overloaded")[0].spent() == Spending()


def used(name: str) -> list[Observation]:
    return [seen for seen in read(name)[1] if seen.kind != "context"]


def test_words_are_seen_as_they_are_written_and_how_full_the_context_is() -> None:
    assert read("partial")[1] == [
        Observation("context", "101"),
        Observation("words", "hello"),
        Observation("text", "hello"),
        Observation("context", "101/1000000"),
    ]
    reader = StreamReader(turn())
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "of a subagent"}}
    line = {"type": "stream_event", "event": delta, "parent_tool_use_id": "t1"}
    assert reader.feed(json.dumps(line, separators=(",", ":")).encode()) == [Observation("life")]


def test_tools_are_seen_as_they_are_used_and_as_they_are_refused() -> None:
    assert used("tool") == [Observation("tool", "Bash echo one"), Observation("text", "it says one")]
    assert used("denied") == [
        Observation("tool", "Bash touch made"),
        Observation("denied", "Bash touch made", ("Bash(touch made:*)",)),
        Observation("text", "I was not allowed to"),
    ]


def test_a_refusal_that_only_the_result_tells_is_seen_too() -> None:
    reader = StreamReader(turn())
    denials = [{"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "ls"}}, "?"]
    result = {"type": "result", "is_error": False, "total_cost_usd": 0.1, "permission_denials": denials}
    seen = reader.feed(json.dumps(result).encode())
    assert seen == [Observation("denied", "Bash ls", ("Bash(ls:*)",))]


@pytest.mark.parametrize(
    ("tool", "given", "allow"),
    [
        ("Bash", {"command": "npm test 2>&1 | tail"}, "Bash(npm test:*)"),
        ("Bash", {"command": "npm run build:all -- --fast"}, "Bash(npm run:*)"),
        ("Bash", {"command": "ls"}, "Bash(ls:*)"),
        ("Bash", {"command": "ls -la"}, "Bash(ls:*)"),
        ("Bash", {"command": "make lint; rm -rf /"}, "Bash(make lint:*) Bash(rm:*)"),
        ("Bash", {"command": "./run.sh\nrm -rf /"}, "Bash(./run.sh:*) Bash(rm:*)"),
        ("Bash", {"command": "git commit -m 'one two'"}, "Bash(git commit:*)"),
        # What does not begin with plain words has no pattern that means this and nothing else.
        (
            "Bash",
            {"command": "cd /tmp && touch x && curl example.org | tee log"},
            "Bash(touch x:*) Bash(curl example.org:*) Bash(tee log:*)",
        ),
        ("Bash", {"command": "echo $HOME"}, "Bash"),
        ("Bash", {"command": "$(make) x"}, "Bash"),
        ("Bash", {"command": "'quoted' x"}, "Bash"),
        ("Bash", {"command": "A=1 make"}, "Bash"),
        ("Bash", {"command": "(cd x; make)"}, "Bash"),
        ("Bash", {"command": ""}, "Bash"),
        ("WebFetch", {"url": "https://example.org/"}, "WebFetch"),
        ("Write", {"file_path": "/etc/passwd"}, "Write"),
        ("mcp__db__query", {"query": "x"}, "mcp__db__query"),
    ],
)
def test_a_refused_tool_is_said_with_the_pattern_that_would_allow_it(
    tool: str, given: dict[str, str], allow: str
) -> None:
    refused = {"tool_name": tool, "tool_use_id": "1", "tool_input": given}
    result = {"type": "result", "total_cost_usd": 0.1, "permission_denials": [refused]}
    [seen] = StreamReader(turn()).feed(json.dumps(result).encode())
    assert (seen.kind, " ".join(seen.allow)) == ("denied", allow)


def test_where_the_pattern_is_allowed_already_only_the_whole_tool_is_left_to_allow() -> None:
    refused = {"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "make > /etc/x"}}
    given = turn(allowed_tools=("Bash(make:*)",))
    result = {"type": "result", "total_cost_usd": 0.1, "permission_denials": [refused]}
    [seen] = StreamReader(given).feed(json.dumps(result).encode())
    assert seen.allow == ("Bash",)


# --- the tool that runs


def uses(*ids: str, name: str = "Bash") -> dict[str, Any]:
    given = [{"type": "tool_use", "id": id, "name": name, "input": {"command": f"do {id}"}} for id in ids]
    return {"type": "assistant", "message": {"content": given}}


def results(*ids: str) -> dict[str, Any]:
    return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id} for id in ids]}}


def tools_after(*events: dict[str, Any]) -> list[str]:
    """Which tool runs after each of these events."""
    reader, seen = StreamReader(turn()), []
    for event in events:
        reader.feed(json.dumps(event).encode())
        seen.append(reader.tool)
    return seen


def test_a_tool_runs_from_its_use_to_its_result() -> None:
    assert tools_after(_said("hm"), uses("a"), results("a"), _said("ok")) == ["", "Bash do a", "", ""]


def test_of_several_tools_at_once_the_one_that_began_last_is_named_until_all_have_ended() -> None:
    events = (uses("a", "b"), uses("c"), results("c"), results("a"), results("x"), results("b"))
    assert tools_after(*events) == ["Bash do b", "Bash do c", "Bash do b", "Bash do b", "Bash do b", ""]


def test_a_result_of_the_turn_ends_every_tool() -> None:
    assert tools_after(uses("a"), {"type": "result", "is_error": False, "result": "ok"}) == ["Bash do a", ""]


def test_what_means_nothing_ends_no_tool() -> None:
    odd: list[dict[str, Any]] = [
        {"type": "user"},
        {"type": "user", "message": {"content": ["?", {"type": "text"}]}},
        {"type": "user", "message": 3},
    ]
    assert tools_after(uses("a"), *odd) == ["Bash do a"] * 4


def test_progress_that_comes_by_the_clock_is_no_life() -> None:
    reader = StreamReader(turn())
    reader.feed(json.dumps(uses("a")).encode())
    progress = {"type": "tool_progress", "tool_use_id": "a", "tool_name": "Bash", "elapsed_time_seconds": 30}
    assert reader.feed(json.dumps(progress).encode()) == []
    assert reader.feed(json.dumps(results("a")).encode()) == [Observation("life")]


# --- what it says when it stops itself


def test_a_turn_that_reached_its_cap_says_which_conversation_to_go_on_from() -> None:
    capped = {"is_error": True, "subtype": "error_max_budget_usd", "errors": ["Reached"], "total_cost_usd": 0.5}
    assert end(_said("half"), capped) == Trouble(kind="cap", error="Reached", session=SESSION, spent=Spending(cost=0.5))


@pytest.mark.parametrize(
    ("type", "only_model"),
    [("seven_day_opus", True), ("seven_day_sonnet", True), ("seven_day", False), ("five_hour", False), (None, False)],
)
def test_a_usage_limit_of_a_model_is_told_from_that_of_an_account(type: str | None, only_model: bool) -> None:
    about = {"status": "rejected", "resetsAt": 99, "rateLimitType": type}
    limit = {"type": "rate_limit_event", "rate_limit_info": about}
    ending = end(limit, {"is_error": True, "api_error_status": 429, "result": "limit"})
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.retry_at, ending.only_model) == ("limit", 99.0, only_model)


def test_a_warning_before_a_limit_is_none() -> None:
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 99}}
    ending = end(limit, {"is_error": True, "api_error_status": 429, "result": "busy"})
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.retry_at, ending.only_model) == ("overload", 0.0, False)


def test_a_conversation_that_is_gone_from_disk_is_named(written: Callable[..., None]) -> None:
    reader = Claude(Setup(name="claude")).reader(turn(base=BASE))
    words = f"No conversation found with session ID: {BASE}\n"
    assert reader.close(1, words) == Trouble(kind="session", error=f"the conversation {BASE} is gone from {sessions()}")


def test_a_program_that_says_nothing_although_its_conversation_is_there_has_crashed(
    written: Callable[..., None],
) -> None:
    written(BASE, ASKED, ANSWERED)
    ending = Claude(Setup(name="claude")).reader(turn(base=BASE)).close(1, "boom")
    assert ending == Trouble(kind="crash", error="the program ended with exit code 1 without a result: boom")
    fresh = Claude(Setup(name="claude")).reader(turn()).close(1, "boom")
    assert fresh == ending


def test_a_program_that_does_not_know_a_permission_mode_is_said_to_be_too_old() -> None:
    said = "error: option '--permission-mode <mode>' argument 'auto' is invalid. Allowed choices are plan."
    ending = Claude(Setup(name="claude")).reader(turn(permission_mode="auto")).close(1, said)
    error = "this Claude Code has no permission mode `auto`; update it: claude update"
    assert ending == Trouble(kind="setup", error=error)


def test_a_program_that_spoke_had_found_its_conversation(written: Callable[..., None]) -> None:
    reader = Claude(Setup(name="claude")).reader(turn(base=BASE))
    reader.feed(b'{"type":"system","subtype":"init"}')
    ending = reader.close(1, "boom")
    assert isinstance(ending, Trouble)
    assert ending.kind == "crash"


def test_a_turn_cut_off_anywhere_before_its_result_is_a_crash_counted_by_an_estimate() -> None:
    lines = (RECORDINGS / "tool.jsonl").read_bytes().splitlines()
    for cut in range(1, len(lines)):
        reader = StreamReader(turn())
        for line in lines[:cut]:
            reader.feed(line)
        assert reader.ending is None
        assert reader.close(-9, "") == Trouble(
            kind="crash",
            error="the program ended with signal 9 without a result",
            spent=Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True),
        )


def test_a_program_that_never_spoke_cost_nothing_and_its_last_word_on_stderr_is_the_evidence() -> None:
    ending = StreamReader(turn()).close(1, "warning: old\nError: Session ID is already in use\n")
    assert ending == Trouble(
        kind="crash", error="the program ended with exit code 1 without a result: Error: Session ID is already in use"
    )


# Seen of Claude Code 2.1.325, without a recording of their own: how the error is called, and the result.
FAILURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "connection lost": ("server_error", {"api_error": "connection_failed"}, "overload"),
    "timed out": ("server_error", {}, "overload"),
    "not logged in": ("authentication_failed", {}, "auth"),
    "forbidden": ("authentication_failed", {"api_error_status": 403}, "auth"),
    "no credit": ("billing_error", {"api_error_status": 400}, "billing"),
    "payment required": ("", {"api_error_status": 402}, "billing"),
    "prompt too long": ("invalid_request", {"api_error_status": 400, "terminal_reason": "prompt_too_long"}, "context"),
    "request too large": ("invalid_request", {"api_error_status": 413, "terminal_reason": "image_error"}, "context"),
    "refusal": ("invalid_request", {"stop_reason": "refusal"}, "refusal"),
    "no such thing": ("", {"api_error_status": 404}, "setup"),
    "server error": ("", {"api_error_status": 503}, "overload"),
    "bad request": ("unknown", {"api_error_status": 400}, "crash"),
    "interrupted": ("", {"subtype": "error_during_execution"}, "crash"),
    "nonsense": ("", {"api_error": ["?"], "api_error_status": "?"}, "crash"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_classed_by_what_the_program_calls_it_never_by_its_words(name: str) -> None:
    error, fields, kind = FAILURES[name]
    ending = end(_failed(error), {"is_error": True, "result": "API Error: 429 401 limit", **fields})
    assert isinstance(ending, Trouble)
    assert ending.kind == kind


def test_an_error_the_turn_got_over_is_none() -> None:
    ending = end(
        _failed("billing_error"),
        _said("on we go"),
        {"is_error": True, "subtype": "error_max_turns", "errors": ["many"]},
    )
    assert ending == Trouble(
        kind="crash", error="many", spent=Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True)
    )


def test_an_error_of_an_agent_below_the_agent_is_not_the_turns() -> None:
    below = {**_failed("billing_error"), "parent_tool_use_id": "toolu_1"}
    ending = end(below, {"is_error": True, "errors": ["else"]})
    assert isinstance(ending, Trouble)
    assert ending.kind == "crash"


def test_a_limit_that_was_met_by_the_way_does_not_date_another_failure() -> None:
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 99}}
    ending = end(limit, {"is_error": True, "api_error_status": 500, "result": "broken"})
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.retry_at) == ("overload", 0.0)


@pytest.mark.parametrize("text", ["429", "You've hit your limit · resets 5pm (UTC)", "API Error: 529"])
def test_a_reply_may_talk_of_anything(text: str) -> None:
    ending = end(_said(text), {"is_error": False, "result": text, "total_cost_usd": 0.1})
    assert ending == Reply(text=text, session=SESSION, spent=Spending(cost=0.1))


@pytest.mark.parametrize("line", [b"", b"no json", b"[1]", b"3", b'{"type":"assistant"}', b'{"type":"result"', b"\xff"])
def test_a_line_that_means_nothing_is_passed_over(line: bytes) -> None:
    reader = StreamReader(turn())
    reader.feed(line)
    assert reader.ending is None


def end(*events: dict[str, Any]) -> Reply | Trouble | None:
    """How a turn ended that printed these; the last is its result."""
    *before, last = events
    reader = StreamReader(turn())
    for event in (*before, {"type": "result", **last}):
        reader.feed(json.dumps(event).encode())
    return reader.ending


def _failed(name: str) -> dict[str, Any]:
    return {**_said("API Error"), "is_api_error_message": True, "error": name}


def _said(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


# --- recall


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes session files as the program does."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "[odd]"))

    def write(session: str, *messages: tuple[str, str, str]) -> None:
        folder = Path(sessions(), "-project")
        folder.mkdir(parents=True, exist_ok=True)
        lines = [_entry(*message) for message in messages]
        (folder / f"{session}.jsonl").write_text("\n".join([*lines, '{"type":"last-prompt"}', '{"torn']), "utf-8")

    return write


def _entry(type: str, text: str, stop: str) -> str:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    message = {"id": f"msg_{text}", "role": type, "content": content, "stop_reason": stop}
    return json.dumps({"type": type, "message": message})


ASKED, ANSWERED = ("user", "asked", ""), ("assistant", "answered", "end_turn")
AGAIN, MORE = ("user", "again", ""), ("assistant", "more", "end_turn")


def test_a_lost_reply_is_read_from_the_session_and_its_cost_is_estimated(written: Callable[..., None]) -> None:
    written(SESSION, ASKED, ANSWERED)
    spent = Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True)
    assert Claude(Setup(name="claude")).recall(turn(prompt="asked")) == Reply(
        text="answered", session=SESSION, spent=spent
    )


def test_a_branch_that_has_its_own_reply_is_recalled(written: Callable[..., None]) -> None:
    written(BASE, ASKED, ANSWERED)
    written(SESSION, ASKED, ANSWERED, AGAIN, MORE)
    recalled = Claude(Setup(name="claude")).recall(turn(base=BASE, prompt="again"))
    assert recalled is not None
    assert recalled.text == "more"


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([], id="nothing"),
        pytest.param([ASKED], id="a question"),
        pytest.param([ASKED, ("assistant", "half", "tool_use")], id="a tool"),
        pytest.param([ASKED, ANSWERED], id="the copy of the conversation before"),
        pytest.param([ASKED, ANSWERED, AGAIN], id="the copy and a question"),
    ],
)
def test_what_is_no_reply_of_this_turn_is_not_recalled(
    written: Callable[..., None], messages: list[tuple[str, ...]]
) -> None:
    written(BASE, ASKED, ANSWERED)
    written(SESSION, *messages)
    assert Claude(Setup(name="claude")).recall(turn(base=BASE, prompt="asked")) is None


ASKS_ELSE = json.dumps({"type": "user", "message": {"role": "user", "content": "another prompt"}})
SUMMARY = json.dumps({"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "so far"}})
ANSWERS = _entry(*ANSWERED)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param([_entry(*ASKED), ANSWERS], "answered", id="the same"),
        pytest.param([_entry("user", " asked\n", ""), ANSWERS], "answered", id="trimmed by the program"),
        pytest.param([_entry(*ASKED), SUMMARY, ANSWERS], "answered", id="and a summary"),
        pytest.param([ANSWERS], "answered", id="nothing to compare with"),
        pytest.param([ASKS_ELSE, ANSWERS], None, id="another"),
    ],
)
def test_a_reply_to_another_prompt_is_not_recalled(
    written: Callable[..., None], lines: list[str], said: str | None
) -> None:
    written(SESSION)
    Path(sessions(), "-project", f"{SESSION}.jsonl").write_text("\n".join(lines))
    recalled = Claude(Setup(name="claude")).recall(turn(prompt="asked"))
    assert (recalled and recalled.text) == said


def test_without_a_session_nothing_is_recalled(written: Callable[..., None]) -> None:
    assert Claude(Setup(name="claude")).recall(turn()) is None


def test_a_pipe_in_the_place_of_a_session_is_not_waited_for(written: Callable[..., None]) -> None:
    """An agent can put it there, in a folder that is looked at before the right one."""
    written(SESSION, ASKED, ANSWERED)
    for name in ("-a", "-z"):
        Path(sessions(), name).mkdir()
        os.mkfifo(Path(sessions(), name, f"{SESSION}.jsonl"))
    recalled = Claude(Setup(name="claude")).recall(turn(prompt="asked"))
    assert recalled is not None
    assert recalled.text == "answered"


def test_a_session_without_end_is_not_read(written: Callable[..., None]) -> None:
    written(SESSION, ASKED, ANSWERED)
    os.truncate(Path(sessions(), "-project", f"{SESSION}.jsonl"), 1 << 40)
    assert Claude(Setup(name="claude")).recall(turn(prompt="asked")) is None


def test_settings_that_are_a_pipe_say_nothing(written: Callable[..., None]) -> None:
    folder = Path(sessions()).parent
    folder.mkdir()
    os.mkfifo(folder / "settings.json")
    assert Claude(Setup(name="claude", options={"program": sys.executable})).look().acts == ()


def test_sessions_are_where_the_program_keeps_them() -> None:
    assert sessions({"HOME": "/home/me"}) == "/home/me/.claude/projects"
    assert sessions({"HOME": "/home/me", "CLAUDE_CONFIG_DIR": "/c"}) == "/c/projects"


# --- a conversation in another directory


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the program's conversations, with one."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "-old-place"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text("said\n")
    return folder.parent


def test_a_conversation_is_copied_to_where_the_program_looks_for_it(stored: Path, tmp_path: Path) -> None:
    place = tmp_path / "new_place.v2"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    name = "".join(letter if letter.isalnum() else "-" for letter in str(place))
    backend = Claude(Setup(name="claude"))
    assert isinstance(backend, Carrier)
    assert backend.carry(SESSION, str(tmp_path / "link"))
    assert (stored / name / f"{SESSION}.jsonl").read_text() == "said\n"
    assert (stored / "-old-place" / f"{SESSION}.jsonl").exists(), "a run elsewhere may need it"


def test_a_conversation_that_is_there_already_is_left_as_it_is(stored: Path) -> None:
    (stored / "-new").mkdir()
    (stored / "-new" / f"{SESSION}.jsonl").write_text("said and more\n")
    assert Claude(Setup(name="claude")).carry(SESSION, "/new")
    assert (stored / "-new" / f"{SESSION}.jsonl").read_text() == "said and more\n"


def test_a_conversation_that_cannot_be_found_or_placed_is_not_there(stored: Path) -> None:
    backend = Claude(Setup(name="claude"))
    assert not backend.carry(BASE, "/new")
    assert not backend.carry(SESSION, "/" + "x" * 200), "how the program shortens a long name is not documented"
    (stored / "-new").write_text("in the way")
    assert not backend.carry(SESSION, "/new")
    assert sorted(path.name for path in stored.iterdir()) == ["-new", "-old-place"]
