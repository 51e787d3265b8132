"""The numbers that a loop tells: they are those of this loop, and agree with each other."""

import json
from pathlib import Path

import pytest

from looping import Night
from typist import Typist

pytestmark = pytest.mark.slow


def test_the_bar_is_full_when_a_short_queue_is_done(tmp_path: Path) -> None:
    night = Night(tmp_path)
    assert night.loop().code == 0
    person = Typist(night.room, "continuous-session", "status")
    person.sees("████████████████████ 1/1")
    assert person.end() == 0


def test_the_commits_of_this_loop_alone_are_shown(tmp_path: Path) -> None:
    night = Night(tmp_path)
    first = night.loop()
    assert "take it over: git merge raymond/n, or raymond apply n\n" in first.out
    night.write({"docs/session_logs/20300101_0900_session.md": "## Next Steps\n\n1. [VERIFY: test -f x] Write x\n"})
    night.commit("another queue")
    night.agent("touch x; echo ITERATION_COMPLETE")
    ran = night.loop("--id", "m")
    assert '- read what was committed: git log -p --grep="Raymond-Run: m" raymond/m' in ran.out
    shown = night.git("log", "--format=%s", "--grep=Raymond-Run: m", "raymond/m")
    assert shown.splitlines() == ["chore(loop): records", "feat: write x"]


def test_a_red_iteration_is_no_failure_in_the_result_nor_in_the_summary(tmp_path: Path) -> None:
    night = Night(tmp_path, agent='echo x >> x.txt; [ "$(wc -l < x.txt)" -lt 3 ] || echo 42 > answer.txt; echo done')
    night.write({"PROMPT.md": "Do it.\n"})
    night.commit("a prompt")
    ran = night.loop("PROMPT.md", "--gate", "sh check.sh", loop="ralph")
    assert ran.code == 0, ran.err
    assert "## Red\n\n- Iteration 1: Do it. (red): " in ran.out
    assert "## Failed" not in ran.out
    assert json.loads(ran.result or "")["text"].endswith(": 1 done, 1 red")
