"""Internal mode in the real Claude Code: its main conversation coordinates, its sub-agents do the items."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Request, Text, Tool, program, results, typed
from raymond.control import runs
from running import driver_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

LOG = "docs/session_logs/20260101_0900_session.md"
QUEUE = (
    "## Next Steps\n\n1. [VERIFY: sh one.sh] Let it greet\n2. [VERIFY: sh two.sh] Let it part\n"
    "3. [VERIFY: sh three.sh] Let it wait\n"
)
FILES = {
    LOG: QUEUE,
    "one.sh": "grep -q hello one.txt\n",
    "two.sh": "grep -q bye two.txt\n",
    "three.sh": "grep -q wait three.txt\n",
}
SUBAGENT = "You are continuing an autonomous continuous session loop."
REPORT = "The report follows:\n"


class Inside:
    """A repository with the slash commands, and a model that follows them as they are written."""

    def __init__(self, desk: Callable[..., Desk], path: Path) -> None:
        self.room = desk(self._answer)
        self.path = self.room.path
        self.does: dict[str, list[Callable[[str], list[Answer]]]] = {}
        """What sub-agents do: title of the item -> for each attempt at it, the answers, given where they work."""
        self.states: list[dict[str, Any]] = []
        """The state file whenever a sub-agent begins."""
        self.patience = 99
        """How many items the main conversation has done before it stops by itself; with 0, it leaves the first one open."""
        self.then = ""
        """A command that it runs at the end."""
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
        with self.start(typed, *args) as live:
            said, errors = live.communicate()
        assert live.returncode == 0, errors
        return said.decode()

    def start(self, typed: str, *args: str) -> "subprocess.Popen[bytes]":
        argv = [program("claude") or "", "-p", typed, "--permission-mode", "acceptEdits", *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, cwd=self.path, env=self.room.environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "docs/.continuous-session-state.json").read_text("utf-8"))
        return found

    @property
    def loop(self) -> str:
        """The id of the loop."""
        return str(self.state["workflow_id"])

    @property
    def subjects(self) -> list[str]:
        return self.git("log", "--reverse", "--format=%s", f"raymond/{self.loop}").splitlines()

    @property
    def subagents(self) -> list[Request]:
        """The first request of every sub-agent."""
        return [one for one in self.room.server.requests if _is_subagent(one) and not results(one)]

    # What the model does

    def _answer(self, request: Request) -> Answer:
        return self._work(request) if _is_subagent(request) else self._coordinate(request)

    def _work(self, request: Request) -> Answer:
        prompt = typed(request)[-1]
        title = next(line[2:] for line in prompt.splitlines() if line.startswith("# "))
        folder = re.search(r"Work in `(.*?)`", prompt)
        assert folder is not None
        if not results(request):
            self.states.append(self.state)
            self._begun.append(title)
        return self.does[title][self._begun.count(title) - 1](folder[1])[len(results(request))]

    def _coordinate(self, request: Request) -> Answer:
        """Follow what the slash command says."""
        said, told = typed(request), results(request)
        if "continuous-session.stop" in said[0]:
            return Text(told[-1]) if told else _bash("stop")
        if not told:
            begin = re.search(r"Begin with `raymond continuous-session (.*?)`", said[-1])
            limit = re.search(r"^Arguments: (\d+)$", said[-1], re.MULTILINE)
            assert begin is not None
            return _bash(begin[1] + (f" --max-sessions {limit[1]}" if limit else ""))
        if REPORT in told[-1]:
            report = told[-1].partition(REPORT)[2].partition("\nagentId:")[0]
            return _bash(f"record --json <<'END_OF_MESSAGE'\n{report}\nEND_OF_MESSAGE")
        if not told[-1].lstrip().startswith("{") and '{"status"' not in told[-1]:
            return Text(told[-1])
        found = json.loads(told[-1][told[-1].index('{"status"') :].splitlines()[0])
        match found["status"]:
            case "item" if self.patience:
                given = {"description": found["title"], "prompt": found["prompt"]}
                return Tool("Agent", {**given, "subagent_type": "general-purpose", "run_in_background": False})
            case "checking":
                return _bash(found["command"].removeprefix("raymond continuous-session "))
            case "recorded" if sum('"recorded"' in one for one in told) < self.patience:
                return _bash("next --json")
            case "done" if self.then:
                command, self.then = f"raymond {self.then} {found['workflow_id']}", ""
                return Tool("Bash", {"command": command, "description": "Ask Raymond"})
            case "done":
                return Text(found["summary"])
            case "waiting":
                return Text(f"{found['question']}\n{found['command']}")
            case _:
                return Text("I stop here.")


def _is_subagent(request: Request) -> bool:
    return bool(typed(request)) and typed(request)[0].startswith(SUBAGENT)


def _bash(command: str) -> Tool:
    return Tool("Bash", {"command": f"raymond continuous-session {command}", "description": "Ask Raymond"})


@pytest.fixture
def inside(desk: Callable[..., Desk], tmp_path: Path) -> Inside:
    return Inside(desk, tmp_path)


def writes(name: str, text: str, said: str, *, reads: bool = False) -> Callable[[str], list[Answer]]:
    """A sub-agent that writes one file; Claude Code wants it to read one that is there before."""

    def does(folder: str) -> list[Answer]:
        path = f"{folder}/{name}"
        first: list[Answer] = [Tool("Read", {"file_path": path})] if reads else []
        tool = Tool("Write", {"file_path": path, "content": text})
        return [*first, tool, Text(f"## Summary\n{said}\n\nITERATION_COMPLETE")]

    return does


def says(text: str) -> Callable[[str], list[Answer]]:
    return lambda _: [Text(text)]


GREETS = writes("one.txt", "hello\n", "The first was here.")
PARTS = writes("two.txt", "bye\n", "The second was here.")


def test_a_session_of_three_items_one_red_one_cheating(inside: Inside) -> None:
    cheats = writes("three.sh", "true\n", "Now it is green.", reads=True)
    inside.does = {
        "Let it greet": [GREETS],
        "Let it part": [says("## Summary\nIt is all green.\n\nITERATION_COMPLETE"), PARTS],
        "Let it wait": [cheats],
    }
    said = inside.claude("/continuous-session.start")
    assert "- Ended: every item was tried: 2 of 3 done, 1 to review" in said
    assert "- Wrong: the agent said 1 time that it was done while the check was red" in said
    assert "- Success rate: 67% (2/3)" in said
    assert inside.subjects == ["base", "feat: let it greet", "feat: let it part", *["chore(loop): records"] * 2]
    assert inside.git("status", "--porcelain") == "", "the checkout is as it was"
    assert inside.git("show", f"raymond/{inside.loop}:three.sh") == FILES["three.sh"].strip()
    assert {one["title"]: one["verdict"] for one in inside.state["failedItems"]} == {"Let it wait": "review"}
    first, red, second, third = inside.subagents
    for one in (first, red, second, third):
        (prompt,) = typed(one)
        assert prompt.startswith(SUBAGENT)
        assert "Continue the continuous session loop." in prompt
        assert "command-name" not in json.dumps(one.body["messages"])
        assert "The first was here" not in json.dumps(one.body["messages"])
    assert "An earlier session tried this item, and it did not count" in typed(second)[0]
    assert [(one["status"], one["currentSession"], len(one["completedItems"])) for one in inside.states] == [
        ("running", 1, 0),
        ("running", 2, 1),
        ("running", 2, 1),
        ("running", 3, 2),
    ]


def test_the_limit_holds_and_the_work_is_brought_home_on_request(inside: Inside) -> None:
    inside.does = {"Let it greet": [GREETS]}
    inside.then = "apply"
    said = inside.claude("/continuous-session.start 1")
    assert "brought home; nothing is committed" in said
    assert inside.state["queueSnapshot"] == ["Let it part", "Let it wait"]
    assert len(inside.subagents) == 1
    assert (inside.path / "one.txt").read_text("utf-8") == "hello\n"


def test_a_hook_that_a_sub_agent_leaves_pauses_the_loop(inside: Inside) -> None:
    def plants(folder: str) -> list[Answer]:
        hook = inside.path / ".git/hooks/pre-commit"
        hook.write_text("#!/bin/sh\ntrue\n", "utf-8")
        return GREETS(folder)

    inside.does = {"Let it greet": [plants]}
    said = inside.claude("/continuous-session.start")
    assert "git is not told the same as before: the hook .git/hooks/pre-commit was added" in said
    assert f"raymond answer {inside.loop} continue" in said
    assert inside.git("ls-tree", "--name-only", f"raymond/{inside.loop}", "one.txt") == ""


def test_stop_is_a_command_too(inside: Inside) -> None:
    inside.does = {"Let it greet": [GREETS]}
    inside.patience = 1
    assert inside.claude("/continuous-session.start") == "I stop here.\n"
    assert inside.state["status"] == "running"
    assert "- Ended: stopped: on request" in inside.claude("/continuous-session.stop")
    assert inside.state["status"] == "complete"
    assert inside.subjects == ["base", "feat: let it greet", "chore(loop): records"]


def test_an_item_that_was_left_open_is_handed_out_again(inside: Inside) -> None:
    inside.does = {"Let it greet": [GREETS]}
    inside.patience = 0
    inside.claude("/continuous-session.start 1")
    assert (inside.state["status"], inside.subagents) == ("running", [])
    inside.patience = 99
    inside.claude("/continuous-session.resume")
    assert [one["title"] for one in inside.state["completedItems"]] == ["Let it greet"]
    assert inside.state["currentSession"] == 1


def test_claude_code_and_record_are_killed_while_a_check_runs(inside: Inside, tmp_path: Path) -> None:
    reached, go = tmp_path / "reached", tmp_path / "go"
    slow = f"[ -e one.txt ] || exit 1\ntouch {reached}\nwhile [ ! -e {go} ]; do sleep 0.02; done\n"
    inside.write("one.sh", slow + FILES["one.sh"])
    inside.git("commit", "-qam", "slow")
    inside.does = {"Let it greet": [GREETS]}
    with inside.start("/continuous-session.start 1") as live:
        until(reached.exists, "the check")
        folder = inside.room.project.run(inside.loop)
        driver = driver_of(folder)
        live.send_signal(signal.SIGKILL)
    assert runs.is_driven(folder), "the check goes on without Claude Code"
    subprocess.run(["kill", "-9", str(driver)], check=True)
    inside.room.clear()
    until(lambda: not runs.is_driven(folder), "its end")
    go.touch()
    said = inside.claude("/continuous-session.resume")
    assert "- Success rate: 100% (1/1)" in said
    assert len(inside.subagents) == 1, "nothing was done again"
    assert inside.subjects.count("feat: let it greet") == 1


def test_a_plugin_has_the_same_commands(inside: Inside) -> None:
    inside.does = {"Let it greet": [GREETS]}
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
