"""What a person and the agent hear of a change of the control plane, in a run."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Room, until
from typist import Typist

pytestmark = pytest.mark.slow

FLOW = {
    "START.md": "---\ngate: sh tests/check.sh\n---\nWrite the answer, then <result>done</result>.\n",
    "workflow.yaml": "backend: mine\n",
}
HEAD = """\
r, main in START.md: TAMPERED with what decides how its work is seen
why:    TAMPERED: the agent changed what decides how its work is seen, not only its work: added \
.git/hooks/pre-commit; added the git setting core.hookspath
what:   added .git/hooks/pre-commit
what:   added the git setting core.hookspath
"""
SHOWN = """\
what was tampered with:
  | added .git/hooks/pre-commit
  |   before: nothing
  |   now:    exit 0
  |
  | added the git setting core.hookspath
  |   before: nothing
  |   now:    evil
"""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A project whose agent does the work, and more."""
    room = Room(tmp_path)
    subprocess.run(["git", "init", "-q", str(room.path)], check=True)
    (room.path / "tests").mkdir()
    (room.path / "tests" / "check.sh").write_text("test -e answer.txt\n")
    does = "touch answer.txt; git config core.hooksPath evil; echo exit 0 > .git/hooks/pre-commit"
    (room.path / "agent").write_text(f"cat >> prompts\n{does}\necho '<result>done</result>'\n")
    room.settings(f'[backends.mine]\ncommand = ["bash", "{room.path}/agent"]\ncost = 0.01\n')
    yield room
    room.clear()


def test_a_person_sees_all_of_it_and_is_asked_in_other_words(room: Room) -> None:
    told = room.path.parent / "home"
    ran = room.command(FLOW, "--notify", "cat > part.$$ && mv part.$$ told.$$")
    assert ran.code == 3, ran.err
    shown = room.raymond("review", "r").stdout
    assert shown.startswith(HEAD)
    assert SHOWN in shown.replace("  | \n", "  |\n")
    until(lambda: [*told.glob("told.*")] or None, "a notification")
    titles = [json.loads(path.read_text("utf-8"))["title"] for path in told.glob("told.*")]
    assert titles == ["r: main TAMPERED with its check"]
    person = Typist(room, "accept", "r", columns=200)
    person.sees(re.escape("hardly any task needs this: accept what was tampered with? [y/n] "))
    person.type("y\n")
    assert person.end() == 0
    assert room.raymond("wait", "r").returncode == 0


def test_the_agent_is_told_to_undo_it_and_what_it_was(room: Room) -> None:
    room.command(FLOW)
    prompts = (room.path / "prompts").read_text("utf-8")
    assert "You changed how git or Raymond sees your work, which is not part of it:\n" in prompts
    assert "added the git setting core.hookspath\n  before: nothing\n  now:    evil\n" in prompts


def test_leave_in_advance_is_for_tests_alone(room: Room) -> None:
    assert room.command(FLOW, "--allow-test-edits").code == 3
