"""The backend and the real Codex together: what is started, what comes of it, and what the model saw."""

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e import model, record, record_codex
from e2e.model import Cut, Error, Gate, Hang, Limit, Script, Text, Tool, Usage, program
from e2e.record_codex import PATCH, Person
from e2e.responses import MISSING, Coded, Responses
from raymond.backends import Observation, Reply, Setup, Trouble, Turn
from raymond.backends.codex import OUTER, Codex
from raymond.backends.codex_events import CodexReader

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not program("codex"), reason=MISSING)]


class Seat(Person):
    """Somebody who uses Codex by way of the backend."""

    @property
    def backend(self) -> Codex:
        return Codex(Setup(name="codex", options={"program": program("codex")}))

    def take(self, turn: Turn, **environment: str) -> tuple[Reply | Trouble, list[Observation]]:
        """Take a turn to its end: how it ended, and what was seen of it."""
        reader, seen = self.backend.reader(turn), []
        with self.start(turn, **environment) as process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            process.stdin.write(turn.prompt)
            process.stdin.close()
            for line in process.stdout:
                seen += reader.feed(line.encode().rstrip(b"\n"))
            errors = process.stderr.read()
        return reader.close(process.wait(), errors), [one for one in seen if one.kind != "life"]

    def start(self, turn: Turn, **environment: str) -> "subprocess.Popen[str]":
        """Start what the backend says."""
        pipe = subprocess.PIPE
        env = self.environment | environment
        return subprocess.Popen(
            self.backend.command(turn).argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=turn.cwd, env=env, text=True
        )

    def reply(self, **given: Any) -> Reply:
        """Take a turn that must not fail."""
        ending, _ = self.take(self.turn(**{"model": "gpt-5.5"} | given))
        assert isinstance(ending, Reply), ending
        return ending

    def trouble(self, **given: Any) -> Trouble:
        """Take a turn that must fail."""
        ending, _ = self.take(self.turn(**{"model": "gpt-5.5"} | given))
        assert isinstance(ending, Trouble), ending
        return ending


@pytest.fixture
def seat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Seat]]:
    """Makes the one seat of a test; nothing may have been asked of another host than the model's."""
    made: list[Seat] = []

    def make(script: Script | None = None, *, retries: int = 0) -> Seat:
        server = Responses(script)
        server.start()
        someone = record_codex.person(tmp_path, server)
        made.append(Seat(someone.home, someone.project, server, retries))
        # The reader looks into the program's own record, as it does in a run, where both have one environment.
        monkeypatch.setenv("CODEX_HOME", str(someone.home / "codex"))
        return made[0]

    yield make
    for one in made:
        one.server.close()
        assert one.server.others == []


def shell(command: str, **given: Any) -> Tool:
    return Tool("exec_command", {"cmd": command}, **given)


# --- replies


def test_a_fresh_turn_is_answered_under_an_id_of_the_programs_own(seat: Callable[..., Seat]) -> None:
    someone = seat([Text("hello", Usage(100, 20, 30))])
    ending, seen = someone.take(someone.turn(model="gpt-5.5", effort="high"))
    assert isinstance(ending, Reply)
    assert ending.text == "hello"
    assert seen == [Observation("session", ending.session), Observation("text", "hello")]
    assert ending.session != "ours"
    assert (ending.spent.tokens_in, ending.spent.tokens_out, ending.spent.meter) == (130, 20, (130, 30, 20))
    (request,) = someone.server.requests
    assert request.turns == [("user", "hello")]
    assert (request.body["model"], request.body["reasoning"]["effort"]) == ("gpt-5.5", "high")


def test_two_branches_of_one_conversation_know_nothing_of_each_other(seat: Callable[..., Seat]) -> None:
    """Judged by what the model was sent; each pays for its own turn only."""
    someone = seat([Text("base", Usage(100, 20, 30)), Text("one"), Text("two"), Text("on")])
    base = someone.reply()
    branches = [someone.reply(prompt=word, base=base.session, meter=base.spent.meter) for word in ("left", "right")]
    further = someone.reply(prompt="further", base=branches[1].session, meter=branches[1].spent.meter)
    begun = [("user", "hello"), ("assistant", "base")]
    assert [request.turns for request in someone.server.requests] == [
        [("user", "hello")],
        [*begun, ("user", "left")],
        [*begun, ("user", "right")],
        [*begun, ("user", "right"), ("assistant", "two"), ("user", "further")],
    ]
    assert len({base.session, further.session, *(branch.session for branch in branches)}) == 4
    assert [(one.spent.tokens_in, one.spent.tokens_out) for one in (*branches, further)] == [(100, 20)] * 3
    assert further.spent.meter == (330, 30, 60)


def test_a_branch_takes_model_effort_and_rights_from_its_own_turn(seat: Callable[..., Seat]) -> None:
    someone = seat([Text("base"), Text("branch")])
    base = someone.reply(model="gpt-6.1-sol", effort="high", permission_mode="plan")
    someone.reply(base=base.session, model="gpt-6-luna", effort="low", permission_mode="bypassPermissions")
    said = [request.body for request in someone.server.requests]
    assert [(one["model"], one["reasoning"]["effort"]) for one in said] == [
        ("gpt-6.1-sol", "high"),
        ("gpt-6-luna", "low"),
    ]
    about = [json.loads(one["client_metadata"]["x-codex-turn-metadata"]) for one in said]
    assert [one["sandbox_mode"] for one in about] == ["read-only", "danger-full-access"]


def test_a_branch_for_a_model_of_another_family_begins_with_a_summary_by_the_first(seat: Callable[..., Seat]) -> None:
    """It costs one more request, and what the agent had said is lost but for that summary."""
    someone = seat([Text("base"), Text("in short"), Text("branch")])
    base = someone.reply(model="gpt-5.5")
    branch = someone.reply(base=base.session, prompt="go on", model="gpt-6.1-sol", meter=base.spent.meter)
    assert [request.body["model"] for request in someone.server.requests] == ["gpt-5.5", "gpt-5.5", "gpt-6.1-sol"]
    first, summary, last = someone.server.requests[-1].turns
    assert (first, last) == (("user", "hello"), ("user", "go on"))
    assert summary[1].endswith("in short")
    assert (branch.text, branch.spent.tokens_in) == ("branch", 200)


def test_a_conversation_can_be_branched_from_another_directory(seat: Callable[..., Seat], tmp_path: Path) -> None:
    someone = seat([Text("base"), Text("branch")])
    base = someone.reply()
    assert someone.reply(base=base.session, cwd=str(tmp_path)).text == "branch"
    assert someone.server.requests[1].turns[:2] == [("user", "hello"), ("assistant", "base")]


def test_without_a_model_the_price_is_that_of_the_users_own(seat: Callable[..., Seat]) -> None:
    someone = seat([Text("hello")])
    ending = someone.reply(model="")
    assert someone.server.requests[0].body["model"] == "gpt-5.4"
    assert not ending.spent.unknown
    assert ending.spent.cost == pytest.approx(100 * 2.5e-6 + 20 * 15e-6)


def test_a_prompt_of_a_million_characters_arrives_whole(seat: Callable[..., Seat]) -> None:
    someone = seat([Text("base"), Text("read"), Text("read")])
    prompt = "é" * 1_048_570 + "\nend"
    base = someone.reply()
    for given in ({}, {"base": base.session}):
        assert someone.reply(prompt=prompt, **given).text == "read"
        assert someone.server.requests[-1].prompt == prompt


@pytest.mark.parametrize("forked", [False, True])
def test_a_prompt_of_five_megabytes_is_refused_by_the_program_itself(seat: Callable[..., Seat], forked: bool) -> None:
    someone = seat([Text("base")])
    base = someone.reply().session if forked else ""
    ending = someone.trouble(prompt="x" * 5_000_000, base=base)
    error = "the prompt has 5000000 characters; Codex accepts at most 1048576"
    assert ending == Trouble(kind="setup", error=error)


# --- tools and rights


def test_a_tool_is_seen_and_edits_the_project(seat: Callable[..., Seat]) -> None:
    someone = seat([shell("echo one > made.txt; cat made.txt", text="I write."), Text("done")])
    ending, seen = someone.take(someone.turn(model="gpt-5.5", permission_mode="acceptEdits"))
    assert isinstance(ending, Reply)
    assert (someone.project / "made.txt").read_text("utf-8") == "one\n"
    assert seen[1:] == [
        Observation("text", "I write."),
        Observation("tool", "Bash echo one > made.txt; cat made.txt"),
        Observation("text", "done"),
    ]
    assert (ending.spent.tokens_in, ending.spent.tokens_out) == (200, 40)


def test_a_patch_is_seen_as_an_edit(seat: Callable[..., Seat]) -> None:
    someone = seat([Tool("apply_patch", {"input": PATCH}), Text("done")])
    _, seen = someone.take(someone.turn(model="gpt-5.5"))
    made = someone.project / "made.txt"
    assert made.read_text("utf-8") == "hello\n"
    assert seen[1] == Observation("tool", f"Edit {made}")


def test_the_project_and_places_for_temporary_files_are_all_that_edits_are_accepted_in(
    seat: Callable[..., Seat], tmp_path: Path
) -> None:
    someone = seat({"": [shell("touch made ../made $OUTSIDE/made"), Text("done")]})
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside:
        someone.take(someone.turn(model="gpt-5.5"), OUTSIDE=outside)
        assert "Read-only file system" in someone.server.requests[1].results[0]
        assert os.listdir(outside) == []
    assert (someone.project / "made").exists()
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("mode", ["plan", "default", "dontAsk"])
def test_modes_that_only_read_let_nothing_be_written(seat: Callable[..., Seat], mode: str) -> None:
    someone = seat([shell("touch made"), Tool("apply_patch", {"input": PATCH}), shell("ls"), Text("done")])
    _, seen = someone.take(someone.turn(model="gpt-5.5", permission_mode=mode))
    assert list(someone.project.iterdir()) == []
    touched, patched, listed = someone.server.requests[-1].results
    assert "Read-only file system" in touched
    assert "blocked by read-only sandbox" in patched
    assert "exited with code 0" in listed
    # What was denied is not shown: a patch never, a command only when it took its time to fail.
    shown = [one.text for one in seen[1:] if one.text != "Bash touch made"]
    assert shown == ["Bash ls", "done"]


def test_skipped_permissions_open_everything(seat: Callable[..., Seat]) -> None:
    someone = seat([shell("touch $OUTSIDE/made"), Text("done")])
    with tempfile.TemporaryDirectory(dir=model.ROOT / ".cache") as outside:
        someone.take(someone.turn(model="gpt-5.5", skip_permissions=True), OUTSIDE=outside)
        assert os.listdir(outside) == ["made"]


def test_all_names_that_codex_sets_for_its_children_are_known(seat: Callable[..., Seat]) -> None:
    someone = seat([shell("env"), Text("done")])
    someone.reply(permission_mode="plan")
    names = set(re.findall(r"^(CODEX_\w+)=", someone.server.requests[-1].results[0], re.MULTILINE))
    assert "CODEX_THREAD_ID" in names
    assert names - set(OUTER) == {"CODEX_HOME"}


# --- failures


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Error(401), "auth"),
        (Error(403), "auth"),
        (Error(404), "setup"),
        (Error(429), "overload"),
        (Coded(429, code="insufficient_quota"), "billing"),
        (Error(500), "overload"),
        (Error(503), "overload"),
        (Cut(), "overload"),
        (Coded(400, code="context_length_exceeded"), "context"),
    ],
)
def test_a_failure_has_a_class_and_costs_nothing(
    seat: Callable[..., Seat], answer: Error | Coded | Cut, kind: str
) -> None:
    ending = seat([answer]).trouble()
    assert (ending.kind, ending.spent.cost, ending.retry_at) == (kind, 0.0, 0.0)


@pytest.mark.parametrize("window", ["five_hour", "seven_day"])
def test_a_usage_limit_says_to_the_second_when_it_ends(seat: Callable[..., Seat], window: str) -> None:
    reset = int(time.time()) + 7217
    ending = seat([Limit(reset, window)]).trouble()
    assert (ending.kind, ending.retry_at, ending.only_model) == ("limit", reset, False)


def test_without_the_record_a_usage_limit_is_dated_by_its_words(
    seat: Callable[..., Seat], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    someone = seat([Limit(int(time.time()) + 3 * 86400)])
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    ending = someone.trouble()
    assert ending.kind == "limit"
    assert 0 < ending.retry_at - (time.time() + 3 * 86400) <= 60


def test_what_was_done_before_a_failure_is_paid(seat: Callable[..., Seat]) -> None:
    ending = seat([shell("echo one"), Error(500)]).trouble()
    assert (ending.kind, ending.spent.tokens_in, ending.spent.unknown) == ("overload", 100, False)
    assert ending.spent.cost > 0


def test_an_attempt_that_broke_is_made_again(seat: Callable[..., Seat]) -> None:
    assert seat([Cut(), Text("hello")], retries=1).reply().text == "hello"


def test_without_a_network_the_program_gives_up(seat: Callable[..., Seat]) -> None:
    someone = seat()
    someone.server.close()
    ending = someone.trouble()
    assert (ending.kind, ending.error) == ("overload", "Connection failed: error sending request")


@pytest.mark.parametrize("base", ["00000000-0000-4000-8000-000000000000", "nobody"])
def test_a_conversation_that_never_was_is_gone(seat: Callable[..., Seat], base: str) -> None:
    assert seat().trouble(base=base) == Trouble(kind="session", error=f"the conversation {base} is gone")


def test_a_branch_is_gone_with_the_conversation_it_came_from(seat: Callable[..., Seat]) -> None:
    """The program does not copy what it branches from."""
    someone = seat([Text("base"), Text("branch")])
    base = someone.reply()
    branch = someone.reply(base=base.session)
    (record,) = someone.home.glob(f"codex/sessions/*/*/*/*{base.session}.jsonl")
    record.unlink()
    ending = someone.trouble(base=branch.session)
    assert ending == Trouble(kind="session", error=f"the conversation {branch.session} is gone")


# --- what is left of a turn that was not seen to its end


def test_a_reply_that_was_not_read_is_recalled_with_what_it_cost(seat: Callable[..., Seat]) -> None:
    someone = seat([Text("base"), shell("echo one"), Text("branch", Usage(200, 5, 60))])
    base = someone.reply()
    told = someone.reply(base=base.session, meter=base.spent.meter)
    assert someone.backend.recall(someone.turn(session=told.session, base=base.session, model="gpt-5.5")) == told


def test_a_turn_that_was_killed_is_a_crash_and_not_recalled(seat: Callable[..., Seat]) -> None:
    hang = Hang(Gate())
    someone = seat([shell("echo one"), hang])
    turn = someone.turn(model="gpt-5.5")
    reader = CodexReader(turn)
    with someone.start(turn) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(turn.prompt)
        process.stdin.close()
        (session,) = reader.feed(process.stdout.readline().encode())
        hang.gate.meet()
        process.terminate()
        for line in process.stdout:
            reader.feed(line.encode())
        ending = reader.close(process.wait(model.PATIENCE), process.stderr.read())
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.spent.unknown) == ("crash", True)
    assert someone.backend.recall(someone.turn(session=session.text)) is None


# --- the program as it is


def test_the_program_is_found_with_its_version_and_who_pays(
    seat: Callable[..., Seat], monkeypatch: pytest.MonkeyPatch
) -> None:
    someone = seat()
    for name, value in someone.environment.items():
        monkeypatch.setenv(name, value)
    found = someone.backend.look()
    assert (found.version, found.problem, found.payer) == ("codex-cli 0.166.0", "", "the key in OPENAI_API_KEY")


def test_codex_asks_nothing_of_anybody_but_the_model(seat: Callable[..., Seat]) -> None:
    someone = seat([shell("echo one"), Text("done")])
    someone.reply()
    assert {request.path for request in someone.server.requests} == {"/v1/responses"}
    assert someone.server.others == []


def test_without_the_switches_it_would(seat: Callable[..., Seat]) -> None:
    """Else the test above would prove nothing."""
    someone = seat([Text("hello")])
    subprocess.run(
        [program("codex") or "", "exec", "--json", "--skip-git-repo-check", "-"],
        input=b"hello",
        cwd=someone.project,
        env=someone.environment,
        timeout=model.PATIENCE,
        capture_output=True,
        check=True,
    )
    assert any(other.startswith("CONNECT ") for other in someone.server.others)
    someone.server.others.clear()


@pytest.mark.parametrize("name", record_codex.cases())
def test_codex_still_prints_and_writes_what_was_recorded(name: str) -> None:
    _, printed, written = record_codex.record(record_codex.cases()[name])
    kept = [record.FOLDER / f"codex_{name}{end}" for end in (".jsonl", ".record.jsonl")]
    assert [shape(text) for text in (printed, written)] == [shape(path.read_text("utf-8")) for path in kept]


def shape(text: str) -> list[tuple[str, ...]]:
    """What a reader depends on: the kinds of lines in their order, and what each holds."""
    return [_shape(json.loads(line)) for line in text.splitlines()]


def _shape(line: dict[str, Any]) -> tuple[str, ...]:
    inner = line.get("item") or line.get("payload") or line.get("usage") or line.get("error") or {}
    return (line["type"], str(inner.get("type", "")), *sorted(line), *sorted(inner))
