"""What is refused before anything is written."""

import re
from contextlib import nullcontext
from typing import Any

import pytest

from builders import Play, head, place, start
from raymond.backends import Abilities
from raymond.control import preflight
from raymond.control.preflight import Proposal
from raymond.control.settings import SiteRules
from raymond.errors import BackendError, UsageError
from raymond.store.loader import Loaded


def findings(text: str, **said: Any) -> list[str]:
    workspace = place({"START.md": head(text)}, "START.md")
    loaded = Loaded(workspace.workflow, "", {}, "")
    return [one.message for one in preflight.wider(Proposal(loaded, start(workspace, **said), {}, SiteRules()))]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("permission_mode: bypassPermissions", {}, 1),
        ("permission_mode: bypassPermissions", {"permission_mode": "bypassPermissions"}, 0),
        ("permission_mode: bypassPermissions", {"skip_permissions": True}, 0),
        ("permission_mode: acceptEdits", {"permission_mode": "plan"}, 1),
        ("permission_mode: plan", {}, 0),
        ("allowed_tools: [Bash, Read]", {}, 2),
        ("allowed_tools: [Bash, Read]", {"allowed_tools": ["Read"]}, 1),
    ],
)
def test_asking_for_more_is_found(text: str, said: dict[str, Any], expected: int) -> None:
    assert len(findings(text, backend="claude", **said)) == expected


def test_a_backend_that_asks_nobody_has_no_rights_to_widen() -> None:
    assert findings("allowed_tools: [Bash]", backend="scripted") == []


def ignored(text: str, can: Abilities, **said: Any) -> list[str]:
    workspace = place({"START.md": head(text)}, "START.md")
    begun = start(workspace, backend="mine", **said)
    proposal = Proposal(Loaded(workspace.workflow, "", {}, ""), begun, {}, SiteRules(), {"mine": can})
    return [one.message for one in preflight.unheeded(proposal)]


def test_a_right_that_the_backend_ignores_is_found() -> None:
    assert ignored("allowed_tools: [Bash]", Abilities(permission_modes=True)) == [
        "mine ignores `allowed_tools`, so START.md would get more rights than it asks for"
    ]
    assert ignored("permission_mode: plan", Abilities(tool_rules=True)) == [
        "mine ignores `permission_mode`, so START.md would get more rights than it asks for"
    ]


@pytest.mark.parametrize(("mode", "found"), [("plan", 1), ("manual", 1), ("acceptEdits", 0), ("", 0)])
def test_a_mode_of_the_person_that_the_backend_ignores_is_found(mode: str, found: int) -> None:
    message = f"mine ignores the permission mode `{mode}`, so START.md would get more rights than you gave"
    assert ignored("retries: 1", Abilities(), permission_mode=mode) == [message] * found
    assert ignored("retries: 1", Abilities(permission_modes=True), permission_mode=mode) == []


def test_a_right_that_the_backend_honours_is_no_finding() -> None:
    assert ignored("disallowed_tools: [Bash]", Abilities(tool_rules=True)) == []
    assert ignored("permission_mode: plan", Abilities(permission_modes=True)) == []


# A run that continues


@pytest.mark.parametrize(
    ("said", "rules", "words"),
    [
        ({"skip_permissions": True}, SiteRules(allow_skip_permissions=False), "skip permissions"),
        ({"permission_mode": "bypassPermissions"}, SiteRules(allow_skip_permissions=False), "skip permissions"),
        ({"budget": 10.0}, SiteRules(max_budget=2.0), "at most $2.00"),
        ({"budget": 0.0}, SiteRules(max_budget=2.0), "at most $2.00"),
        ({"backend": "codex"}, SiteRules(backends=["claude"]), "no backend `codex`"),
        ({"backends": {"START.md": "mine"}}, SiteRules(backends=["claude"]), "no backend `mine`"),
        ({"model": "opus"}, SiteRules(models=["haiku"]), "no model `opus`"),
    ],
)
def test_a_run_that_could_not_start_today_does_not_continue(said: dict[str, Any], rules: SiteRules, words: str) -> None:
    play = Play({"START.md": ""}, **said)
    with pytest.raises(UsageError, match=re.escape(words)):
        preflight.check_site(play.run, rules, play.workspace.workflow)
    preflight.check_site(play.run, SiteRules(), play.workspace.workflow)


def test_a_run_within_the_rules_continues() -> None:
    rules = SiteRules(max_budget=10.0, allow_skip_permissions=False, backends=["claude"], models=["haiku"])
    for said in ({"budget": 10.0, "model": "haiku"}, {"budget": 1.0}):
        play = Play({"START.md": head("model: haiku")}, **said)
        preflight.check_site(play.run, rules, play.workspace.workflow)


# Programs


@pytest.mark.parametrize(("tag", "wanted"), [("<goto>OTHER</goto>", True), ("continue with OTHER", True), ("", False)])
def test_a_program_is_looked_for_only_where_the_entry_can_lead(
    tag: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    files = {
        "START.py": f"print('<result>done</result>')  # {tag}",
        "OTHER.md": head("backend: codex") + "<result>x</result>",
    }
    workspace = place(files, "START.py")
    begun = start(workspace, backend="scripted", backends={"OTHER.md": "codex"})
    proposal = Proposal(Loaded(workspace.workflow, "", {}, ""), begun, {}, SiteRules())
    with pytest.raises(BackendError, match="codex") if wanted else nullcontext():
        preflight.check_start(proposal)
