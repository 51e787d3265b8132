"""The contract of backends, kept by the real programs; the model behind them is ours."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from e2e.model import MISSING, Answer, Model, Request, Text, claude_environment, program, turns
from e2e.responses import Responses, codex_environment
from raymond.backends import Backend, Setup
from raymond.backends.claude import Claude
from raymond.backends.codex import Codex
from raymond.testing.backend_contract import BackendContract

pytestmark = pytest.mark.e2e


class Real(BackendContract):
    """A program with a home of its own and a model that says what the test wants."""

    answer = ""
    given: Mapping[str, str] = {}

    def reply(self, _: Request) -> Answer:
        return Text(self.answer)

    def expect(self, text: str) -> None:
        self.answer = text

    def environment(self) -> Mapping[str, str]:
        return self.given


@pytest.mark.skipif(program("claude") is None, reason=MISSING)
class TestClaudeCode(Real):
    @pytest.fixture(autouse=True)
    def _desk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with Model(self.reply) as self.server:
            self.given = claude_environment(tmp_path / "home", self.server)
            monkeypatch.setenv("CLAUDE_CONFIG_DIR", self.given["CLAUDE_CONFIG_DIR"])
            yield

    def make(self) -> Backend:
        return Claude(Setup(name="claude", options={"program": program("claude")}))

    def seen(self) -> str:
        return "\n".join(text for _, text in turns(self.server.requests[-1]))


@pytest.mark.skipif(program("codex") is None, reason="run make e2e first: Codex is not installed")
class TestCodex(Real):
    @pytest.fixture(autouse=True)
    def _desk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with Responses(self.reply) as self.server:
            self.given = codex_environment(tmp_path / "home", self.server)
            monkeypatch.setenv("CODEX_HOME", self.given["CODEX_HOME"])
            yield

    def make(self) -> Backend:
        return Codex(Setup(name="codex", options={"program": program("codex")}))

    def seen(self) -> str:
        items = self.server.requests[-1].body["input"]
        return "\n".join(part.get("text", "") for item in items for part in item.get("content") or [])
