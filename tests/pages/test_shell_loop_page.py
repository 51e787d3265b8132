"""docs/from-a-shell-loop.md: what it says to do when the loop is stuck, done with scripted replies."""

import re
import shlex
from pathlib import Path

import pytest

from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "from-a-shell-loop.md").read_text("utf-8")
FOUND = re.search(r"^## 4\. .*?(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
assert FOUND
SECTION = FOUND[0]


def block(name: str) -> str:
    """A file of the section."""
    found = re.search(rf"^`{name}`.*?^```\w+\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1]


@pytest.mark.slow
def test_a_loop_that_is_stuck_continues_with_the_command_of_the_page_which_next_says_too(room: Room) -> None:
    for name in ("PROMPT.md", "STUCK.sh"):
        (room.path / name).write_text(block(name), "utf-8")
    check = block("CHECK.sh")
    (room.path / "CHECK.sh").write_text(check.replace("max_visits: 50", "max_visits: 2"), "utf-8")
    (room.path / "Makefile").write_text("test:\n\ttest -e repaired\n", "utf-8")
    (room.path / "fix_plan.md").write_text("- [x] all of it\n", "utf-8")
    (room.path / "replies.yaml").write_text("PROMPT: {text: done}\n", "utf-8")
    stuck = room.raymond("PROMPT.md", "--replies", "replies.yaml", "--id", "r")
    [command] = re.findall(r"^raymond resume .*", SECTION, re.MULTILINE)
    assert stuck.stderr.splitlines()[-1] == (
        f"next:   raise max_visits in CHECK.sh, then: {command.replace('resume', 'resume r')}.md"
    )

    (room.path / "repaired").touch()
    (room.path / "CHECK.sh").write_text(check, "utf-8")
    done = room.raymond(*shlex.split(command)[1:])
    assert (done.returncode, done.stdout) == (0, "every box is ticked, and the check passes\n"), done.stderr
