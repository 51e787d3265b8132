"""A workflow may narrow what the person who starts it allows, and never widen it."""

from typing import Any

import pytest

from builders import head, place, start
from raymond.language import policy
from raymond.machine import rights
from raymond.machine.rights import Rights


def given(text: str, **said: Any) -> Rights:
    return rights.of(
        start(place({"START.md": ""}, "START.md"), **said), policy.parse(head(text), file="A.md", script=False).policy
    )


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("retries: 1", {}, Rights("acceptEdits", (), (), False)),
        ("retries: 1", {"permission_mode": "plan"}, Rights("plan", (), (), False)),
        ("retries: 1", {"allowed_tools": ["Read", "Bash(ls)"]}, Rights("acceptEdits", ("Read", "Bash(ls)"), (), False)),
        ("allowed_tools: [Read]", {"allowed_tools": ["Read", "Bash(ls)"]}, Rights("acceptEdits", ("Read",), (), False)),
        ("disallowed_tools: [Bash]", {}, Rights("acceptEdits", (), ("Bash",), False)),
        ("gate: make test", {}, Rights("acceptEdits", ("Bash(make test:*)",), (), False)),
        ("retries: 1", {"skip_permissions": True}, Rights("acceptEdits", (), (), True)),
        ("permission_mode: plan", {"skip_permissions": True}, Rights("plan", (), (), False)),
    ],
)
def test_a_turn_may_do_what_the_person_allows_and_its_state_leaves(
    text: str, said: dict[str, Any], expected: Rights
) -> None:
    assert given(text, **said) == expected


def findings(text: str, **said: Any) -> list[str]:
    workspace = place({"START.md": head(text)}, "START.md")
    return [one.message for one in rights.wider(workspace.workflow, start(workspace, **said), ("scripted",))]


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
