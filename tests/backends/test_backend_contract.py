"""The contract that is shipped to who writes a backend, kept by the backends that need no account."""

import json
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from raymond.backends import Backend, Setup
from raymond.backends.command import CommandBackend
from raymond.backends.scripted import Replies, ScriptedProgram, conversation
from raymond.testing.backend_contract import BackendContract

PROGRAM = """
import json, pathlib, sys
folder, new, base = pathlib.Path(sys.argv[1]), sys.argv[2], (sys.argv[3:] or [""])[0]
talk = json.loads((folder / base).read_text()) if base else []
talk.append(sys.stdin.read())
(folder / "seen").write_text("\\n".join(talk))
answer = (folder / "answer").read_text()
(folder / new).write_text(json.dumps([*talk, answer]))
print(answer)
"""
"""An agent of somebody's own: conversations in files, answers from a file."""


class TestScriptedProgram(BackendContract):
    """The program that plays Claude Code."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.sessions = str(tmp_path)
        self.replies = Replies("{}")

    def make(self) -> Backend:
        return ScriptedProgram(self.replies, self.sessions)

    def expect(self, text: str) -> None:
        self.replies = Replies(json.dumps({"TRIAL.md": text}))

    def seen(self) -> str:
        newest = max(Path(self.sessions).glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        turns = conversation(self.sessions, newest.stem)
        return "\n".join(text for turn in turns for text in (turn.prompt, turn.reply))


class OwnProgram(BackendContract):
    """A program of somebody's own, as config.toml names it."""

    options: ClassVar[dict[str, list[str]]] = {}

    @pytest.fixture(autouse=True)
    def _program(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        (tmp_path / "agent.py").write_text(PROGRAM)
        agent = [sys.executable, str(tmp_path / "agent.py"), str(tmp_path)]
        self.table = {name: [*agent, *more] for name, more in self.options.items()}

    def make(self) -> Backend:
        return CommandBackend(Setup(name="own", options=self.table))

    def expect(self, text: str) -> None:
        (self.folder / "answer").write_text(text)

    def seen(self) -> str:
        return (self.folder / "seen").read_text()


class TestOneThatBranches(OwnProgram):
    options: ClassVar = {"command": ["{new}"], "branch": ["{new}", "{session}"]}


class TestOneThatGoesOnInPlace(OwnProgram):
    options: ClassVar = {"command": ["{new}"], "resume": ["{session}", "{session}"]}


class TestOneThatRemembersNothing(OwnProgram):
    options: ClassVar = {"command": ["{new}"]}


@pytest.mark.slow
def test_the_contract_can_be_broken() -> None:
    """A suite that passes whatever a backend does would be worth nothing."""

    class Deaf(TestScriptedProgram):
        def seen(self) -> str:
            return "amber basalt"

    class Mute(TestScriptedProgram):
        def expect(self, text: str) -> None:
            self.replies = Replies(json.dumps({"TRIAL.md": {"fail": "crash"}}))

    for broken, fact in (
        (Deaf, "test_a_prompt_arrives_as_it_was_written"),
        (Deaf, "test_a_fresh_turn_remembers_nothing"),
        (Deaf, "test_a_branch_leaves_what_it_came_from"),
        (Mute, "test_a_prompt_is_answered"),
    ):
        suite = broken()
        suite.sessions, suite.replies = "/tmp/none", Replies("{}")
        with pytest.raises(AssertionError):
            getattr(suite, fact)()
