"""The folder that an agent's program has in a workspace: what is copied in, what comes out, and who pays."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raymond.backends import Housed, Login, Places, Setup, Turn
from raymond.backends.claude import Claude
from raymond.backends.codex import Codex
from raymond.errors import WorkspaceError
from raymond.workspace import home

SESSION = "11111111-1111-5111-8111-111111111111"
BASE = "22222222-2222-5222-8222-222222222222"
FOREIGN = ("ANTHROPIC_", "CLAUDE", "CODEX_", "OPENAI_", "AWS_", "GOOGLE_", "AZURE_")


class Person:
    """A home with settings of both programs, and a run with a workspace."""

    def __init__(self, path: Path) -> None:
        self.home, self.project, self.run, self.state = (path / one for one in ("home", "project", "run", "state"))
        self.claude, self.codex = self.home / ".claude", self.home / ".codex"
        for folder in (self.claude, self.codex, self.project, self.run):
            folder.mkdir(parents=True)
        self.state.mkdir(mode=0o700)

    def turn(self, **given: Any) -> Turn:
        usual: dict[str, Any] = {"agent": "main", "state": "START.md", "visit": 1, "tries": 0, "prompt": "hi"}
        usual |= {"session": SESSION, "cwd": str(self.project), "spool": "/s", "isolated": True}
        return Turn(**(usual | given))

    def backend(self, kind: type[Claude] | type[Codex], **given: Any) -> Claude | Codex:
        return kind(Setup(name=kind.name, folder=str(self.run / kind.name), **given))


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A person with an empty home, and nothing of theirs in the environment."""
    for name in [*os.environ]:
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    made = Person(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("RAYMOND_HOME", str(made.state))
    return made


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


# --- what is copied in


def test_a_run_gets_copies_of_the_settings_and_of_nothing_else(person: Person) -> None:
    for name in (
        "settings.json",
        "CLAUDE.md",
        "agents/a.md",
        ".credentials.json",
        "history.jsonl",
        "projects/p/memory/m",
    ):
        (person.claude / name).parent.mkdir(parents=True, exist_ok=True)
        (person.claude / name).write_text(name)
    hook = person.claude / "hooks" / "h"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh")
    hook.chmod(0o755)
    person.backend(Claude).command(person.turn())
    copied = person.run / "claude"
    assert files(copied) == {"settings.json", "CLAUDE.md", "agents/a.md", "hooks/h", ".claude.json"}
    assert os.access(copied / "hooks" / "h", os.X_OK)
    (copied / "settings.json").write_text("the agent's")
    person.backend(Claude).command(person.turn())
    assert (copied / "settings.json").read_text() == "the agent's"
    assert (person.claude / "settings.json").read_text() == "settings.json"


def test_of_what_claude_remembers_only_servers_and_this_project_are_copied(person: Person, tmp_path: Path) -> None:
    about = {"hasTrustDialogAccepted": True, "mcpServers": {"own": {}}, "history": ["what I said"]}
    projects = {str(person.project): about, str(tmp_path): about, "/other": about}
    state = {"mcpServers": {"all": {"command": "x"}}, "oauthAccount": {"emailAddress": "a@b"}, "projects": projects}
    (person.home / ".claude.json").write_text(json.dumps(state))
    person.backend(Claude).command(person.turn())
    copied = json.loads((person.run / "claude" / ".claude.json").read_text())
    kept = {"hasTrustDialogAccepted": True, "mcpServers": {"own": {}}}
    assert copied == {
        "hasCompletedOnboarding": True,
        "mcpServers": {"all": {"command": "x"}},
        "projects": {str(person.project): kept, str(tmp_path): kept},
    }


def test_codex_gets_its_settings_and_not_its_login(person: Person) -> None:
    for name in ("config.toml", "AGENTS.md", "auth.json", "history.jsonl"):
        (person.codex / name).write_text("")
    person.backend(Codex).command(person.turn())
    assert files(person.run / "codex") == {"config.toml", "AGENTS.md"}


def test_links_are_followed_and_loops_pipes_and_what_is_missing_are_left_out(tmp_path: Path) -> None:
    source, elsewhere = tmp_path / "source", tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "file").write_text("there")
    source.mkdir()
    (source / "skills").symlink_to(elsewhere)
    (elsewhere / "loop").symlink_to(elsewhere)
    (elsewhere / "gone").symlink_to("/nowhere")
    os.mkfifo(elsewhere / "pipe")
    home.furnish(str(tmp_path / "run" / "x"), str(source), ["skills", "missing"], {"made": b"1"})
    assert files(tmp_path / "run" / "x") == {"skills/deep/file", "made"}
    assert not (tmp_path / "run" / "x" / "skills").is_symlink()


def test_a_folder_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("12345")
    (tmp_path / "b").write_text("12345")
    monkeypatch.setattr(home, "_MOST_BYTES", 9)
    with pytest.raises(WorkspaceError, match=r"are too large for a workspace: more than 0 MB or 20,000 files"):
        home.furnish(str(tmp_path / "run" / "x"), str(tmp_path), ["a", "b"])
    assert not (tmp_path / "run" / "x").exists()
    monkeypatch.setattr(home, "_MOST_BYTES", 10)
    home.furnish(str(tmp_path / "run" / "x"), str(tmp_path), ["a", "b"])
    assert os.listdir(tmp_path / "run") == ["x"]


# --- where it is found


def test_the_folder_of_the_run_is_where_the_persons_own_would_be(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = person.backend(Claude).command(person.turn())
    assert command.environment["CLAUDE_CONFIG_DIR"] == str(person.claude)
    assert command.folders == {str(person.claude): str(person.run / "claude")}
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere")
    assert list(person.backend(Claude).command(person.turn()).folders) == ["/elsewhere"]
    command = person.backend(Codex).command(person.turn())
    assert command.environment == {"CODEX_HOME": str(person.codex)}
    assert command.folders == {str(person.codex): str(person.run / "codex")}


@pytest.mark.parametrize("kind", [Claude, Codex])
def test_a_turn_that_is_not_isolated_uses_the_persons_own_folder(person: Person, kind: type[Claude]) -> None:
    command = person.backend(kind).command(person.turn(isolated=False))
    plain = kind(Setup(name=kind.name)).command(person.turn(isolated=False))
    assert command == plain
    assert not command.folders
    assert os.listdir(person.run) == []


# --- what comes out


def _claude_session(person: Person, folder: Path) -> Path:
    return folder / "projects" / str(person.project).replace("/", "-").replace("_", "-") / f"{SESSION}.jsonl"


def _codex_record(person: Person, folder: Path) -> Path:
    return folder / "sessions" / "2026" / "11" / "18" / f"rollout-2026-11-18T10-00-00-{SESSION}.jsonl"


Named = tuple[type[Claude] | type[Codex], str, Callable[[Person, Path], Path]]


@pytest.fixture(params=[(Claude, "claude", _claude_session), (Codex, "codex", _codex_record)], ids=["claude", "codex"])
def named(request: pytest.FixtureRequest) -> Named:
    """A backend, its folder, and where that has the conversation of a turn."""
    found: Named = request.param
    return found


def test_the_conversation_of_a_turn_comes_out_and_nothing_else(person: Person, named: Named) -> None:
    kind, name, at = named
    inside, outside = at(person, person.run / name), at(person, person.home / f".{name}")
    inside.parent.mkdir(parents=True)
    inside.write_text("said")
    inside.with_name(inside.name.replace(SESSION, BASE)).write_text("another")
    (inside.parent / "memory").mkdir()
    (inside.parent / "memory" / "MEMORY.md").write_text("remember")
    before = files(person.home)
    backend = person.backend(kind)
    assert isinstance(backend, Housed)
    backend.export(person.turn(), SESSION)
    assert outside.read_text() == "said"
    assert files(person.home) - before == {str(outside.relative_to(person.home))}
    inside.write_text("said otherwise")
    backend.export(person.turn(), SESSION)
    assert outside.read_text() == "said"


def _linked_file(path: Path, secret: Path) -> None:
    path.parent.mkdir(parents=True)
    path.symlink_to(secret)


def _linked_folder(path: Path, secret: Path) -> None:
    path.parent.parent.mkdir(parents=True)
    (secret.parent / path.name).write_text(secret.read_text())
    path.parent.symlink_to(secret.parent)


def _linked_above(path: Path, secret: Path) -> None:
    path.parent.parent.parent.mkdir(parents=True)
    (secret.parent / path.parent.name).mkdir()
    (secret.parent / path.parent.name / path.name).write_text(secret.read_text())
    path.parent.parent.symlink_to(secret.parent)


def _pipe(path: Path, secret: Path) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)


def _endless(path: Path, secret: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("plant", [_linked_file, _linked_folder, _linked_above, _pipe, _endless])
def test_what_an_agent_puts_in_the_place_of_a_conversation_stays_inside(
    person: Person, named: Named, plant: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    kind, name, at = named
    secret = tmp_path / "secrets" / "key"
    secret.parent.mkdir()
    secret.write_text('{"secret": 1}')
    plant(at(person, person.run / name), secret)
    before = files(person.home)
    person.backend(kind).export(person.turn(), SESSION)
    assert files(person.home) == before
    assert person.backend(kind).recall(person.turn()) is None


def test_a_lost_reply_is_found_in_the_folder_of_the_run(person: Person, named: Named) -> None:
    kind, name, at = named
    inside, outside = at(person, person.run / name), at(person, person.home / f".{name}")
    lines = {
        "claude": {"type": "assistant", "message": {"id": "m", "stop_reason": "end_turn", "content": "inside"}},
        "codex": {"type": "event_msg", "payload": {"type": "task_complete", "last_agent_message": "inside"}},
    }
    for path in (inside, outside):
        path.parent.mkdir(parents=True)
    outside.write_text(json.dumps(lines[name]).replace("inside", "outside"))
    backend = person.backend(kind)
    assert backend.recall(person.turn()) is None
    inside.write_text(json.dumps(lines[name]))
    for isolated, text in ((True, "inside"), (False, "outside")):
        reply = backend.recall(person.turn(isolated=isolated))
        assert reply
        assert reply.text == text


def test_a_conversation_of_the_persons_checkout_is_brought_along(person: Person, named: Named) -> None:
    kind, name, at = named
    outside, inside = at(person, person.home / f".{name}"), at(person, person.run / name)
    outside.parent.mkdir(parents=True)
    outside.write_text("{}")
    person.backend(kind).command(person.turn(base=SESSION))
    assert inside.read_text() == "{}"


# --- rights


def test_an_isolated_turn_needs_no_rules_for_places_that_it_cannot_reach(person: Person) -> None:
    places = Places(hidden=["/h"], readable=["/r"], fixed=["/f"])
    argv = person.backend(Claude, places=places).command(person.turn()).argv
    rules = json.loads(argv[argv.index("--settings") + 1])
    assert rules == {"permissions": {"deny": ["Edit(//r)"], "allow": ["Read(//r)"]}}
    argv = person.backend(Codex, places=Places(fixed=["/etc"])).command(person.turn()).argv
    assert "default_permissions" not in " ".join(argv)


def test_a_copy_in_raymond_home_can_be_written(person: Person) -> None:
    tree = person.state / "projects" / "p" / "runs" / "r" / "tree"
    tree.mkdir(parents=True)
    places = Places(hidden=[f"{person.state}/projects"], fixed=[str(person.state), "/etc"])
    given = person.turn(isolated=False, cwd=str(tree))
    argv = person.backend(Claude, places=places).command(given).argv
    assert json.loads(argv[argv.index("--settings") + 1]) == {"permissions": {"deny": ["Edit(//etc)"]}}


@pytest.mark.parametrize(("mode", "reads"), [("", False), ("acceptEdits", False), ("plan", True), ("default", True)])
def test_where_codex_has_no_sandbox_the_workspace_is_one(
    person: Person, monkeypatch: pytest.MonkeyPatch, mode: str, reads: bool
) -> None:
    skip = "--dangerously-bypass-approvals-and-sandbox"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command = person.backend(Codex).command(person.turn(permission_mode=mode))
    assert (skip in command.argv, command.only_reads) == (True, reads)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    command = person.backend(Codex).command(person.turn(permission_mode=mode))
    assert (command.argv[command.argv.index("--sandbox") + 1], command.only_reads) == (
        "read-only" if reads else "workspace-write",
        False,
    )


# --- logins


KEYS = {
    "ANTHROPIC_API_KEY": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"),
    "ANTHROPIC_AUTH_TOKEN": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"),
    "CLAUDE_CODE_OAUTH_TOKEN": ("CLAUDE_CODE_OAUTH_TOKEN",),
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_",),
    "CLAUDE_CODE_USE_FOUNDRY": ("ANTHROPIC_FOUNDRY_", "AZURE_"),
}


def _log_in(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".credentials.json").write_text("{}")


@pytest.mark.parametrize("name", KEYS)
def test_where_a_variable_pays_no_login_is_lent(person: Person, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _log_in(person.claude)
    _log_in(person.state / "logins" / "claude")
    monkeypatch.setenv(name, "x")
    backend = person.backend(Claude)
    command = backend.command(person.turn())
    assert backend.login() == Login()
    assert command.needs == KEYS[name]
    assert list(command.folders) == [str(person.claude)]
    assert "CLAUDE_SECURESTORAGE_CONFIG_DIR" not in command.environment


def test_a_helper_that_prints_a_key_needs_no_login(person: Person) -> None:
    _log_in(person.claude)
    (person.claude / "settings.json").write_text('{"apiKeyHelper": "print-key"}')
    assert person.backend(Claude).login() == Login()


def test_the_login_of_claude_is_lent_only_from_a_folder_of_its_own(person: Person) -> None:
    backend = person.backend(Claude)
    assert backend.login() == Login()
    _log_in(person.claude)
    found = backend.login()
    assert str(person.claude / ".credentials.json") in found.problem
    assert "`claude setup-token`" in found.hint
    own = person.state / "logins" / "claude"
    _log_in(own)
    assert backend.login() == Login(
        note=f"the agent's program can read the login in {own}; `claude setup-token` avoids that"
    )
    command = backend.command(person.turn())
    assert command.environment["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == str(own)
    assert command.folders == {
        str(person.claude): str(person.run / "claude"),
        str(own.parent): str(own.parent),
    }


def test_the_login_of_codex_is_the_persons_file(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, path = person.backend(Codex), person.codex / "auth.json"
    assert backend.login() == Login()
    path.write_text('{"tokens": {"account_id": "a"}}')
    assert str(path) in backend.login().note
    assert backend.command(person.turn()).folders == {
        str(person.codex): str(person.run / "codex"),
        str(path): str(path),
    }
    provider = 'model_provider = "p"\n[model_providers.p]\nrequires_openai_auth = '
    for says, is_lent in (("true", True), ("false", False)):
        (person.codex / "config.toml").write_text(provider + says)
        assert bool(backend.login().note) == is_lent
    (person.codex / "config.toml").unlink()
    monkeypatch.setenv("CODEX_API_KEY", "k")
    assert backend.login() == Login()
    assert list(backend.command(person.turn()).folders) == [str(person.codex)]


def test_codex_gets_the_variables_that_its_provider_names(person: Person) -> None:
    provider = 'model_provider = "p"\n[model_providers.p]\nenv_key = "MY_KEY"\nenv_http_headers = {"X-Y" = "MY_AUTH"}\n'
    (person.codex / "config.toml").write_text(provider)
    needs = person.backend(Codex).command(person.turn()).needs
    assert needs == ("MY_KEY", "MY_AUTH", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")
