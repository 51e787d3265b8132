"""What an agent marks as done in a plan that the loop does not follow: it stays, and is named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from looping import HONEST, Night
from planned import PRD, SPEC, STATUS, TASKS
from raymond.loops import plan_marks

FIRST, REST = TASKS.split("### 1.4.2")
STORIES = {"stories": [{"id": "US-1", "passes": False, "verification": {"type": "command", "command": "sh check.sh"}}]}


def noted(old: str, new: str, path: str = SPEC) -> list[str]:
    return plan_marks.between([(path, old)], [(path, new)])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("**Status:** 🔵 Planned", "**Status:** ✅ Complete", "marked task 1.4.1 as complete"),
        ("**Status:** 🔵 Planned", "**Status:** ✅ Complete\n**Verified:** true", "marked task 1.4.1 as verified"),
        ("`sh check.sh`", "`true`", "changed the check of task 1.4.1"),
        ("`sh check.sh`", "`sh check.sh`\n- may: check.sh", "changed the check of task 1.4.1"),
    ],
)
def test_a_task_is_named(old: str, new: str, says: str) -> None:
    assert noted(TASKS, TASKS.replace(old, new, 1)) == [f"{says} in {SPEC}"]


def test_what_neither_marks_nor_changes_a_check_is_not_named() -> None:
    done = TASKS.replace("🔵 Planned", "✅ Complete\n**Verified:** true")
    assert noted(TASKS, TASKS.replace("Explain it", "Explain all of it") + "\nMore text.\n") == []
    assert noted(TASKS, FIRST) == []
    assert noted(done, TASKS) == [], "it is to be done again"
    assert noted(done, done.replace("**Verified:** true\n", "")) == []
    assert noted("", TASKS) == [], "new tasks are work like any other"


def test_a_spec_that_was_renamed_is_compared_with_the_one_before() -> None:
    other = SPEC.replace("answers", "others")
    assert plan_marks.between([(SPEC, TASKS), (other, "")], [(SPEC, ""), (other, TASKS)]) == []
    done = TASKS.replace("🔵 Planned", "✅ Complete", 1)
    named = plan_marks.between([(SPEC, TASKS), (other, "")], [(SPEC, ""), (other, done)])
    assert named == [f"marked task 1.4.1 as complete in {other}"]


def test_a_second_task_with_the_same_id_is_named_if_it_is_done() -> None:
    done = FIRST.replace("🔵 Planned", "✅ Complete\n**Verified:** true")
    assert noted(TASKS, TASKS + done) == [f"marked task 1.4.1 as verified in {SPEC}"]
    assert noted(TASKS + FIRST, FIRST + TASKS) == []


def test_stories_are_named() -> None:
    status = json.dumps(STORIES)
    assert noted(status, status.replace("false", "true"), STATUS) == [f"marked story US-1 as passing in {STATUS}"]
    assert noted(status, status.replace("sh check.sh", "true"), STATUS) == [
        f"changed the check of story US-1 in {STATUS}"
    ]
    assert noted(PRD, PRD.replace("sh check.sh", "true"), "docs/prd.md") == [
        "changed the check of story US-1 in docs/prd.md"
    ]
    [broken] = noted(status, status[:-3], STATUS)
    assert broken.startswith(f"changed {STATUS}, which cannot be read any more: ")
    assert noted(status[:-3], status.replace("false", "true"), STATUS) == [f"marked story US-1 as passing in {STATUS}"]
    assert noted(status, "", STATUS) == []


def test_no_more_are_named_than_anybody_reads() -> None:
    many = "".join(TASKS.replace("1.4.", f"1.4{number}.") for number in range(20))
    named = noted(many, many.replace("🔵 Planned", "✅ Complete"))
    assert (len(named), named[-1]) == (21, "marked or changed 20 more tasks and stories")


def test_a_step_reads_no_specs_unless_they_changed() -> None:
    code = (
        "import sys, raymond.loops.finishing, raymond.loops.committing\n"
        "print([one for one in sys.modules if one.endswith(('task_spec', 'prd', 'prd_status', 'plan_marks'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


MARKS = f"""
sed -i '0,/🔵 Planned/s//✅ Complete\\n**Verified:** true/' {SPEC}
sed -i 's/grep -q because why.txt/true/' {SPEC}
sed -i 's/"passes": false/"passes": true/' {STATUS}
{HONEST}
"""


@pytest.mark.slow
def test_what_an_agent_of_a_session_marks_in_a_plan_is_in_the_summary(tmp_path: Path) -> None:
    night = Night(tmp_path, **{SPEC.replace("/", "__"): TASKS, STATUS.replace("/", "__"): json.dumps(STORIES)})
    night.agent(MARKS)
    ran = night.loop()
    assert ran.code == 0, ran.out
    noticed = ran.out.partition("## Noticed")[2]
    for what in (
        f"the agent marked task 1.4.1 as verified in {SPEC}",
        f"the agent changed the check of task 1.4.2 in {SPEC}",
        f"the agent marked story US-1 as passing in {STATUS}",
    ):
        assert what in noticed, ran.out
    assert "**Verified:** true" in night.git("show", f"HEAD~1:{SPEC}"), "it stays what the agent has done"
