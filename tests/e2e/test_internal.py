"""Loops from inside of the real Claude Code: its main conversation coordinates, its sub-agents do the items."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Request, Text, Tool, program, results, typed

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

LOG = "docs/session_logs/20260101_0900_session.md"
QUEUE = "## Next Steps\n\n1. [VERIFY: sh one.sh] Let it greet\n2. [VERIFY: sh two.sh] Let it part\n"
FILES = {LOG: QUEUE, "one.sh": "grep -q hello one.txt\n", "two.sh": "grep -q bye two.txt\n"}
SUBAGENT = "You are continuing an autonomous continuous session loop."
REPORT = "The report follows:\n"


class Inside:
    """A repository with the slash commands, and a model that follows them as they are written."""

    def __init__(self, desk: Callable[..., Desk], path: Path) -> None:
        self.room = desk(self._answer)
        self.path = self.room.path
        self.does: dict[str, list[list[Answer]]] = {}
        """What sub-agents do: title of the item -> the answers of each attempt at it."""
        self.states: list[dict[str, Any]] = []
        """The state file whenever a sub-agent begins."""
        self.patience = 99
        """How many items the main conversation has done before it stops by itself; with 0, it leaves the first one open."""
        self._begun: list[str] = []
        bin = path / "bin"
        bin.mkdir()
        (bin / "raymond").write_text(f'#!/bin/sh\nexec {sys.executable} -m raymond "$@"\n', "utf-8")
        (bin / "raymond").chmod(0o755)
        self.room.environment["PATH"] = f"{bin}:{self.room.environment['PATH']}"
        for name, text in FILES.items():
            self.write(name, text)
        self.git("init", "-q", "-b", "main", ".")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@b.c")
        assert self.room.raymond("init", "--claude").returncode == 0
        self.git("add", ".")
        self.git("commit", "-qm", "base")

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text, "utf-8")

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=self.room.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def claude(self, typed: str, *args: str) -> str:
        """What Claude Code says to something that is typed."""
        argv = [program("claude") or "", "-p", typed, "--permission-mode", "acceptEdits", *args]
        done = subprocess.run(
            argv, cwd=self.path, env=self.room.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "docs/.continuous-session-state.json").read_text("utf-8"))
        return found

    @property
    def subjects(self) -> list[str]:
        return self.git("log", "--reverse", "--format=%s").splitlines()

    @property
    def subagents(self) -> list[Request]:
        """The first request of every sub-agent."""
        return [one for one in self.room.server.requests if _is_subagent(one) and not results(one)]

    # What the model does

    def _answer(self, request: Request) -> Answer:
        return self._work(request) if _is_subagent(request) else self._coordinate(request)

    def _work(self, request: Request) -> Answer:
        title = next(line[2:] for line in typed(request)[-1].splitlines() if line.startswith("# "))
        if not results(request):
            self.states.append(self.state)
            self._begun.append(title)
        attempt = self.does[title][self._begun.count(title) - 1]
        return attempt[len(results(request))]

    def _coordinate(self, request: Request) -> Answer:
        """Follow the protocol of the slash command."""
        said, told = typed(request), results(request)
        if "continuous-session.stop" in said[0]:
            return Text(told[-1]) if told else _bash("stop")
        if not told and "continuous-session.resume" in said[0]:
            return _bash("next --json --resume")
        if not told:
            limit = re.search(r"<command-args>(\d+)<", said[0])
            return _bash(f"next --json --max-sessions {limit[1]}" if limit else "next --json")
        if REPORT in told[-1]:
            report = told[-1].partition(REPORT)[2].partition("\nagentId:")[0]
            return _bash(f"record --json <<'END_OF_MESSAGE'\n{report}\nEND_OF_MESSAGE")
        found = json.loads(told[-1].splitlines()[-1])
        match found["status"]:
            case "item" if self.patience:
                given = {"description": found["item"]["title"], "prompt": found["prompt"]}
                return Tool("Agent", {**given, "subagent_type": "general-purpose", "run_in_background": False})
            case "checking":
                return _bash("record --json --wait 90s")
            case "recorded" | "again" if sum('"recorded"' in one for one in told) < self.patience:
                return _bash("next --json")
            case "done":
                return Text(found["summary"])
            case _:
                return Text("I stop here.")


def _is_subagent(request: Request) -> bool:
    return bool(typed(request)) and typed(request)[0].startswith(SUBAGENT)


def _bash(command: str) -> Tool:
    return Tool("Bash", {"command": f"raymond continuous-session {command}", "description": "Ask Raymond"})


@pytest.fixture
def inside(desk: Callable[..., Desk], tmp_path: Path) -> Inside:
    return Inside(desk, tmp_path)


def writes(inside: Inside, name: str, text: str, said: str) -> list[Answer]:
    path = str(inside.path / name)
    first: list[Answer] = [Tool("Read", {"file_path": path})] if (inside.path / name).exists() else []
    return [
        *first,
        Tool("Write", {"file_path": path, "content": text}),
        Text(f"## Summary\n{said}\n\nITERATION_COMPLETE"),
    ]


def test_two_items_are_done_by_two_sub_agents_that_know_nothing_of_each_other(inside: Inside) -> None:
    inside.does = {
        "Let it greet": [writes(inside, "one.txt", "hello\n", "The first was here.")],
        "Let it part": [writes(inside, "two.txt", "bye\n", "The second was here.")],
    }
    said = inside.claude("/continuous-session.start")
    assert "- Ended: completed: nothing that can be worked on is left in the queue" in said
    assert "- Success rate: 100% (2/2)" in said
    assert inside.subjects == ["base", "feat: let it greet", "feat: let it part", "chore(loop): records"]
    assert "The first was here." in inside.git("show", "HEAD~2", "--", "docs/session_logs")
    first, second = inside.subagents
    for one in (first, second):
        (prompt,) = typed(one)
        assert prompt.startswith(SUBAGENT)
        assert "Continue the continuous session loop." in prompt
        assert "command-name" not in json.dumps(one.body["messages"])
    assert "# Let it greet" in typed(first)[0]
    assert "# Let it part" in typed(second)[0]
    assert "The first was here" not in json.dumps(second.body["messages"])
    assert [(one["status"], one["currentSession"], len(one["completedItems"])) for one in inside.states] == [
        ("running", 1, 0),
        ("running", 2, 1),
    ]
    assert (inside.state["status"], len(inside.state["completedItems"])) == ("complete", 2)


def test_the_limit_that_was_typed_holds(inside: Inside) -> None:
    inside.does = {"Let it greet": [writes(inside, "one.txt", "hello\n", "It greets.")]}
    said = inside.claude("/continuous-session.start 1")
    assert "- Ended: limit: the maximum of 1 session was reached" in said
    assert inside.state["queueSnapshot"] == ["Let it part"]
    assert len(inside.subagents) == 1


def test_a_sub_agent_that_cheats_is_not_believed(inside: Inside) -> None:
    inside.does = {
        "Let it greet": [
            [Text("## Summary\nIt is all green.\n\nITERATION_COMPLETE")],
            writes(inside, "one.sh", "true\n", "Now it is green."),
        ],
        "Let it part": [[Text("I cannot.\n\nITERATION_FAILED")]],
    }
    said = inside.claude("/continuous-session.start")
    assert "- Success rate: 0% (0/2)" in said
    assert {one["title"]: one["verdict"] for one in inside.state["failedItems"]} == {
        "Let it greet": "review",
        "Let it part": "gave up",
    }
    assert inside.subjects == ["base", "chore(loop): records"]
    assert inside.git("show", "HEAD:one.sh") == FILES["one.sh"].strip()
    assert "An earlier session tried this item, and it did not count" in typed(inside.subagents[1])[0]


def test_stop_is_a_command_too(inside: Inside) -> None:
    inside.does = {"Let it greet": [writes(inside, "one.txt", "hello\n", "It greets.")]}
    inside.patience = 1
    assert inside.claude("/continuous-session.start") == "I stop here.\n"
    assert inside.state["status"] == "running"
    assert "has stopped; raymond continuous-session status shows it." in inside.claude("/continuous-session.stop")
    assert inside.state["status"] == "complete"
    assert inside.subjects == ["base", "feat: let it greet", "chore(loop): records"]


def test_an_item_that_was_left_open_is_handed_out_again(inside: Inside) -> None:
    inside.does = {"Let it greet": [writes(inside, "one.txt", "hello\n", "It greets.")]}
    inside.patience = 0
    inside.claude("/continuous-session.start 1")
    assert (inside.state["status"], inside.subagents) == ("running", [])
    inside.patience = 1
    inside.claude("/continuous-session.resume")
    assert [one["title"] for one in inside.state["completedItems"]] == ["Let it greet"]
    assert inside.state["currentSession"] == 1


def test_a_plugin_has_the_same_commands(inside: Inside) -> None:
    inside.does = {"Let it greet": [writes(inside, "one.txt", "hello\n", "It greets.")]}
    plugin = str(inside.path.parent / "plugin")
    assert inside.room.raymond("init", "--plugin", plugin).returncode == 0
    checked = subprocess.run(
        [program("claude") or "", "plugin", "validate", "--strict", plugin],
        env=inside.room.environment,
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    said = inside.claude("/raymond:continuous-session.start 1", "--plugin-dir", plugin)
    assert "- Ended: limit: the maximum of 1 session was reached" in said
