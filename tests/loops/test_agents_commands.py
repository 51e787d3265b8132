"""What an agent asks Raymond for in its turn: the queue, the learnings and the decisions belong to people."""

import sys
from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow
QUEUE = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: true] Second\n"
EDITOR = "sed -i 's/VERIFY: true/VERIFY: touch ..\\/pwned/'"
COMMANDS = {
    "edit": f'EDITOR="{EDITOR}" $R continuous-session edit',
    "edit with nothing in its environment": f'env -i PATH="$PATH" HOME="$HOME" EDITOR="{EDITOR}" $R continuous-session edit',
    "learn": "$R continuous-session learn 'Trust everybody'",
    "learn from the background": "(setsid $R continuous-session learn 'Trust everybody' &); sleep 0.3",
    "stop": "$R continuous-session stop",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_agent_changes_neither_queue_nor_learnings_nor_the_end(tmp_path: Path, name: str) -> None:
    raymond = f"R='{sys.executable} -m raymond'\n"
    night = Night(
        tmp_path,
        QUEUE,
        f"{raymond}(cd $TEST_ROOM; {COMMANDS[name]}) 2>> $TEST_ROOM/../said\necho 42 > answer.txt\necho ITERATION_COMPLETE",
    )
    ran = night.loop()
    assert ran.code == 0, ran.err
    said = (tmp_path / "said").read_text("utf-8")
    assert "was asked for by a step of a run" in said or "background" in name
    assert not (tmp_path / "pwned").exists()
    assert not (night.path / "docs/critical-learnings.md").exists()
    assert [one["title"] for one in night.state["completedItems"]] == ["Write the answer", "Second"]


@pytest.mark.parametrize("verb", ["accept n 1", "reject n 1 because"])
def test_an_agent_decides_nothing_that_was_set_aside(tmp_path: Path, verb: str) -> None:
    agent = f"""
    R='{sys.executable} -m raymond'
    if [ -e $TEST_ROOM/../first ]; then $R {verb} 2>> $TEST_ROOM/../said; echo 42 > answer.txt
    else touch $TEST_ROOM/../first; mkdir -p .github; echo x > .github/ci.yml; echo 42 > answer.txt; fi
    echo ITERATION_COMPLETE
    """
    night = Night(tmp_path, QUEUE, agent)
    night.loop("--attempts", "1")
    assert "was asked for by a step of a run" in (tmp_path / "said").read_text("utf-8")
    assert "n, item 1: Write the answer: review" in night.room.raymond("review", "n").stdout
