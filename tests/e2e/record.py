"""What Claude Code really prints, kept in recordings/: from the folder tests, `python -m e2e.record` makes them again.

Ids, paths, ports, times and durations are replaced by constants, and the long lists of system/init are emptied.
The moment of a reset stays, since it also stands in words in the same recording. `forked_2.1.197` was made once, with
that release.
"""

import json
import re
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.model import (
    MISSING,
    PATIENCE,
    Answer,
    Error,
    Limit,
    Model,
    Text,
    Tool,
    Usage,
    claude_environment,
    program,
    subscribed,
    unified,
)

FOLDER = Path(__file__).parent / "recordings"
LISTS = ("tools", "slash_commands", "terminal_slash_commands", "skills", "agents", "plugins")
SKIP = "--dangerously-skip-permissions"


@dataclass(frozen=True)
class Ended:
    """A run of the program that is over."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def all(self, type: str, subtype: str | None = None) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == type and subtype in (None, line.get("subtype"))]

    @property
    def result(self) -> dict[str, Any]:
        (result,) = self.all("result")
        return result


@dataclass(frozen=True)
class Person:
    """Somebody with a home and a project, who uses Claude Code."""

    home: Path
    project: Path
    server: Model
    subscription: bool = False

    @property
    def environment(self) -> dict[str, str]:
        usual = claude_environment(self.home, self.server)
        return subscribed(usual) if self.subscription else usual

    def claude(self, prompt: str, *args: str, **environment: str) -> Ended:
        """Run Claude Code to its end."""
        ended = subprocess.run(
            self.command(*args),
            input=prompt,
            cwd=self.project,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def command(self, *args: str) -> list[str]:
        found = program("claude")
        assert found, MISSING
        return [found, "-p", "--output-format", "stream-json", "--verbose", *args]


def person(folder: Path, server: Model, *, subscription: bool = False) -> Person:
    """A new person with an empty home and an empty project below a folder."""
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    return Person(home, project, server, subscription)


@dataclass(frozen=True)
class Case:
    """One thing that can happen to a turn."""

    answers: Sequence[Answer]
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    subscription: bool = False
    forked: bool = False


def cases() -> dict[str, Case]:
    """The recordings by name."""
    once = {"CLAUDE_CODE_MAX_RETRIES": "1"}
    reset = int(time.time()) // 3600 * 3600 + 7200
    echo = Tool("Bash", {"command": "echo out; echo err >&2; exit 3"}, text="I look.")
    used = unified("allowed_warning", reset, utilization=0.92)
    return {
        "reply": Case([Text("hello", Usage(10, 5, 1000, 200))]),
        "partial": Case([Text("hello", thought="They greet me.")], ("--include-partial-messages",)),
        "tool": Case([Tool("Bash", {"command": "echo one"}), Text("it says one")], (SKIP,)),
        "failing_tool": Case([echo, Text("it failed")], (SKIP,)),
        "denied": Case([Tool("Bash", {"command": "touch made"}), Text("I was not allowed to")]),
        "forked": Case([Text("base"), Text("branch")], forked=True),
        "retried": Case([Error(500), Text("hello")]),
        "overloaded": Case([Error(529)] * 2, environment=once),
        "unauthorized": Case([Error(401)] * 2, environment=once),
        "unknown_model": Case([Error(404)] * 2, ("--model", "claude-nobody-1")),
        "rate_limited": Case([Error(429, retry_after=1)] * 2, environment=once),
        "usage_allowed": Case([Text("hello", headers=used)], subscription=True),
        "usage_limit": Case([Limit(reset)], subscription=True),
        "max_turns": Case([Tool("Bash", {"command": "echo one"})], (SKIP, "--max-turns", "1")),
        "max_budget": Case(
            [Tool("Bash", {"command": "echo one"}, usage=Usage(1_000_000))], (SKIP, "--max-budget-usd", "0.5")
        ),
    }


def record(case: Case) -> tuple[Ended, str]:
    """Let it happen: how it ended, and what was printed as it is kept."""
    with tempfile.TemporaryDirectory() as folder, Model(case.answers) as server:
        someone = person(Path(folder), server, subscription=case.subscription)
        args = list(case.args)
        if case.forked:
            base, branch = str(uuid.uuid4()), str(uuid.uuid4())
            someone.claude("hello", "--session-id", base)
            args += ["--resume", base, "--fork-session", "--session-id", branch]
        ended = someone.claude("hello", *args, **case.environment)
        return ended, "".join(_line(_neutral(one)) for one in _renamed(ended.out, someone))


def _line(content: Any) -> str:
    """Written as the program writes it."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def _renamed(out: str, someone: Person) -> list[dict[str, Any]]:
    """The lines, with the same new name wherever an id stood."""
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        kind = found["kind"]
        count = sum(name.startswith(kind or "0000") for name in names.values()) + 1
        return names.setdefault(found[0], f"{kind}{count:04}" if kind else f"00000000-0000-4000-8000-{count:012}")

    out = out.replace(str(someone.project), "/project").replace(str(someone.home), "/home")
    # The folder of a session is named after the project's, with dashes.
    out = out.replace(re.sub(r"[^A-Za-z0-9]", "-", str(someone.project)), "-project")
    out = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", out)
    ids = r"(?P<kind>msg_|toolu_|req_)[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    return [json.loads(line) for line in re.sub(ids, rename, out).splitlines()]


def _neutral(line: Any, key: str = "") -> Any:
    match line:
        case dict():
            return {name: _neutral(value, name) for name, value in line.items()}
        case list():
            return [] if key in LISTS else [_neutral(value) for value in line]
        case int() | float() if key.endswith("_ms"):
            return 100
        case str() if key == "timestamp":
            return "2026-01-01T00:00:00.000Z"
        case str() if key.endswith("socket_path"):
            return "/tmp/socket"
    return line


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, case in cases().items():
        ended, text = record(case)
        (FOLDER / f"{name}.jsonl").write_text(text, "utf-8")
        print(f"{name}: exit code {ended.code}, {len(text)} bytes {ended.err}")


if __name__ == "__main__":
    main()
