"""What a person may pass on to the agents' programs, and what not."""

from typing import Any

import pytest

from raymond.backends import Setup, Turn
from raymond.backends.agent_program import read_options
from raymond.backends.claude import Claude
from raymond.backends.codex import Codex
from raymond.errors import UsageError
from raymond.store.trust import Trust

TURN = Turn(agent="a", state="S.md", visit=1, tries=0, prompt="go", session="s", cwd="/", spool="/s")
TRUSTED = Trust({"/": None})


@pytest.mark.parametrize(
    ("name", "args", "refused"),
    [
        ("claude", ["--dangerously-skip-permissions"], "--dangerously-skip-permissions"),
        ("claude", ["--add-dir", "/x", "--permission-mode=auto"], "--permission-mode"),
        ("claude", ["--allowedTools", "Bash"], "--allowedTools"),
        ("claude", ["--allowed-tools", "Bash"], "--allowed-tools"),
        ("claude", ["--settings", "{}"], "--settings"),
        ("claude", ["--setting-sources", "project"], "--setting-sources"),
        ("claude", ["--session-id", "x"], "--session-id"),
        ("claude", ["--resume", "x"], "--resume"),
        ("claude", ["-p"], "-p"),
        ("claude", ["-cr"], "-cr"),
        ("claude", ["--output-format", "text"], "--output-format"),
        ("claude", ["--", "--permission-mode"], "--"),
        ("codex", ["--sandbox", "danger-full-access"], "--sandbox"),
        ("codex", ["-sdanger-full-access"], "-sdanger-full-access"),
        ("codex", ["--dangerously-bypass-approvals-and-sandbox"], "--dangerously-bypass-approvals-and-sandbox"),
        ("codex", ["-c", "sandbox_mode=danger-full-access"], "sandbox_mode="),
        ("codex", ["--config=permissions.raymond={}"], "permissions="),
        ("codex", ["-c", 'projects={"/"={trust_level="trusted"}}'], "projects="),
        ("codex", ["-c", ' "projects" = {}'], "projects="),
        ("codex", ["-m", "x"], "-m"),
    ],
)
def test_a_flag_that_gives_rights_or_is_raymonds_to_set_is_refused(name: str, args: list[str], refused: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(name, {"args": args})
    assert str(caught.value) == f"[backends.{name}] `args` cannot have `{refused}`"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"args": "--add-dir /x"}, "[backends.claude] `args` must be a list of texts"),
        ({"args": ["do it"]}, "[backends.claude] `args` must begin with a flag, not `do it`"),
        ({"setting_sources": ["users"]}, "[backends.claude] `setting_sources` has no `users`"),
        ({"setting_sources": "user"}, "[backends.claude] `setting_sources` must be a list of texts"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(table: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options("claude", table)
    assert str(caught.value) == error


def test_arguments_go_before_raymonds_own_so_that_these_win() -> None:
    args = ["--mcp-config", "/x.json", "--fallback-model=haiku"]
    argv = Claude(Setup(name="claude", options={"args": args})).command(TURN).argv
    at = argv.index("--mcp-config")
    assert argv[at : at + 4] == [*args, "--setting-sources"]
    argv = Codex(Setup(name="codex", options={"args": ["-c", "web_search=true"]})).command(TURN).argv
    assert argv.index("web_search=true") < argv.index("--sandbox")


@pytest.mark.parametrize(
    ("named", "trust", "given"),
    [
        (["user"], TRUSTED, "user"),
        (["project", "local"], TRUSTED, "project,local"),
        (["user", "project", "local"], Trust(), "user"),
        (["project"], Trust(), ""),
    ],
)
def test_sources_of_settings_are_those_named_but_a_projects_only_where_it_is_trusted(
    named: list[str], trust: Trust, given: str
) -> None:
    argv = Claude(Setup(name="claude", options={"setting_sources": named}, trust=trust)).command(TURN).argv
    assert argv[argv.index("--setting-sources") + 1] == given
