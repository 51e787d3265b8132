"""What Codex really prints, kept in recordings/: from the folder tests, `python -m e2e.record_codex` makes them again.

NAME.jsonl is what was printed, and NAME.record.jsonl what of the program's own record of the conversation is read.
Ids, paths, ports and times are replaced by constants. The moment of a reset stays, since it also stands in words.
"""

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.model import Answer, Break, Cut, Error, Limit, Text, Tool, Usage, program
from e2e.record import FOLDER, Ended
from e2e.responses import MISSING, Coded, Responses, codex_environment
from raymond.backends import Setup, Turn
from raymond.backends.codex import Codex

KEPT = {
    "task_started": ("type",),
    "task_complete": ("type", "last_agent_message", "error"),
    "token_count": ("type", "info", "rate_limits"),
    "token_usage_record": ("turn_token_usage",),
    "turn_context": ("model",),
}
"""The lines of a record that are read, and what of them."""
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\n"


@dataclass(frozen=True)
class Person:
    """Somebody with a home and a project, who uses Codex."""

    home: Path
    project: Path
    server: Responses
    retries: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return codex_environment(self.home, self.server, retries=self.retries)

    def turn(self, **given: Any) -> Turn:
        """A turn of this person's, with the prompt `hello` and nothing special."""
        usual: dict[str, Any] = {
            "agent": "main",
            "state": "START.md",
            "visit": 1,
            "tries": 0,
            "prompt": "hello",
            "session": "ours",
        }
        return Turn(**(usual | {"cwd": str(self.project), "spool": str(self.home)} | given))

    def codex(self, turn: Turn) -> Ended:
        """Run what the backend says to the end."""
        found = program("codex")
        assert found, MISSING
        ended = subprocess.run(
            Codex(Setup(name="codex", options={"program": found})).command(turn).argv,
            input=turn.prompt,
            cwd=turn.cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def record(self, id: str) -> str:
        """The program's own record of a conversation."""
        (path,) = self.home.glob(f"codex/sessions/*/*/*/rollout-*-{id}.jsonl")
        return path.read_text("utf-8")


def person(folder: Path, server: Responses, *, retries: int = 0) -> Person:
    """A new person with an empty home and an empty project below a folder."""
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    return Person(home, project, server, retries)


@dataclass(frozen=True)
class Case:
    """One thing that can happen to a turn."""

    answers: Sequence[Answer]
    given: dict[str, Any] = field(default_factory=dict)
    forked: bool = False
    retries: int = 0


def cases() -> dict[str, Case]:
    """The recordings by name."""
    reset = int(time.time()) // 3600 * 3600 + 7200
    failing = Tool("exec_command", {"cmd": "echo out; echo err >&2; exit 3"}, text="I look.")
    return {
        "reply": Case([Text("hello", Usage(100, 20, 30))]),
        "warned": Case([Text("hello")], {"model": "gpt-nobody"}),
        "tool": Case([Tool("exec_command", {"cmd": "echo one"}), Text("it says one")]),
        "failing_tool": Case([failing, Text("it failed")]),
        "patch": Case([Tool("apply_patch", {"input": PATCH}), Text("made")]),
        "denied": Case([Tool("apply_patch", {"input": PATCH}), Text("no")], {"permission_mode": "plan"}),
        "forked": Case([Text("base", Usage(100, 20, 30)), Text("branch", Usage(200, 5, 60))], forked=True),
        "retried": Case([Cut(), Text("hello")], retries=1),
        "worked_then_failed": Case([Tool("exec_command", {"cmd": "echo one"}), Error(500)]),
        "bad_request": Case([Coded(400, "no such thing", code="invalid_value")]),
        "unauthorized": Case([Error(401)]),
        "forbidden": Case([Error(403)]),
        "unknown_model": Case([Error(404)]),
        "rate_limited": Case([Error(429)]),
        "server_error": Case([Error(500)]),
        "overloaded": Case([Error(503)]),
        "unavailable": Case([Coded(503, code="else")]),
        "cut": Case([Cut()]),
        "context": Case([Break("context_length_exceeded")]),
        "context_refused": Case([Coded(400, "too long", code="context_length_exceeded")]),
        "policy": Case([Break("cyber_policy")]),
        "quota": Case([Coded(429, code="insufficient_quota")]),
        "usage_limit": Case([Limit(reset)]),
    }


def record(case: Case) -> tuple[Ended, str, str]:
    """Let it happen: how it ended, what was printed and what was written down, as it is kept."""
    with tempfile.TemporaryDirectory() as folder, Responses(case.answers) as server:
        someone = person(Path(folder), server, retries=case.retries)
        base = someone.codex(someone.turn()).lines[0]["thread_id"] if case.forked else ""
        ended = someone.codex(someone.turn(base=base, **{"model": "gpt-5.5"} | case.given))
        written = [json.loads(line) for line in someone.record(ended.lines[0]["thread_id"]).splitlines()]
        kept = [line for line in map(_kept, written) if line]
        return ended, _renamed(ended.out, someone), _renamed("".join(map(_line, kept)), someone)


def _kept(line: dict[str, Any]) -> dict[str, Any] | None:
    about = line["payload"]
    names = KEPT.get(about.get("type", "") if line["type"] == "event_msg" else line["type"])
    return {"type": line["type"], "payload": {name: about[name] for name in names if name in about}} if names else None


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def _renamed(text: str, someone: Person) -> str:
    names: dict[str, str] = {}
    text = text.replace(str(someone.project), "/project").replace(str(someone.home), "/home")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", text)
    ids = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    return re.sub(ids, lambda id: names.setdefault(id[0], f"00000000-0000-7000-8000-{len(names) + 1:012}"), text)


def main() -> None:
    for name, case in cases().items():
        ended, printed, written = record(case)
        (FOLDER / f"codex_{name}.jsonl").write_text(printed, "utf-8")
        (FOLDER / f"codex_{name}.record.jsonl").write_text(written, "utf-8")
        print(f"{name}: exit code {ended.code}, {len(printed)} and {len(written)} bytes {ended.err}")


if __name__ == "__main__":
    main()
