"""A workflow may narrow what the person who starts it allows, and never widen it."""

from typing import Any

import pytest

from builders import head, place, start
from raymond.language import policy
from raymond.machine import limits
from raymond.machine.limits import Rights


def given(text: str, **said: Any) -> Rights:
    person = limits.rights_of(start(place({"START.md": ""}, "START.md"), **said))
    return limits.narrowed_rights(person, policy.parse(head(text), file="A.md", script=False).policy)


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("retries: 1", {}, Rights("acceptEdits", (), (), False)),
        ("retries: 1", {"permission_mode": "plan"}, Rights("plan", (), (), False)),
        ("retries: 1", {"allowed_tools": ["Read", "Bash(ls)"]}, Rights("acceptEdits", ("Read", "Bash(ls)"), (), False)),
        ("allowed_tools: [Read]", {"allowed_tools": ["Read", "Bash(ls)"]}, Rights("acceptEdits", ("Read",), (), False)),
        ("disallowed_tools: [Bash]", {}, Rights("acceptEdits", (), ("Bash",), False)),
        ("gate: make test", {}, Rights("acceptEdits", (), (), False)),
        ("retries: 1", {"skip_permissions": True}, Rights("acceptEdits", (), (), True)),
        ("permission_mode: plan", {"skip_permissions": True}, Rights("plan", (), (), False)),
        ("permission_mode: bypassPermissions", {}, Rights("acceptEdits", (), (), False)),
        ("permission_mode: auto", {}, Rights("acceptEdits", (), (), False)),
        ("permission_mode: manual", {}, Rights("manual", (), (), False)),
        ("permission_mode: auto", {"permission_mode": "bypassPermissions"}, Rights("auto", (), (), False)),
        ("permission_mode: acceptEdits", {"permission_mode": "auto"}, Rights("acceptEdits", (), (), False)),
        ("permission_mode: acceptEdits", {"permission_mode": "plan"}, Rights("plan", (), (), False)),
        ("permission_mode: bypassPermissions", {"skip_permissions": True}, Rights("bypassPermissions", (), (), False)),
    ],
)
def test_a_turn_may_do_what_the_person_allows_and_its_state_leaves(
    text: str, said: dict[str, Any], expected: Rights
) -> None:
    assert given(text, **said) == expected


def test_a_run_begins_with_the_rights_that_its_start_names() -> None:
    workspace = place({"START.md": ""})
    assert limits.rights_of(start(workspace)) == Rights("", (), (), False)
    said = start(workspace, permission_mode="plan", allowed_tools=["Read", "Edit"], skip_permissions=True)
    assert limits.rights_of(said) == Rights("plan", ("Read", "Edit"), (), True)
