"""Plans that a person changes, or breaks, between two items of a loop."""

from pathlib import Path

import pytest

from planned import BOTH, PRD, SPEC, STATUS, TASKS, Planned
from raymond.loops.documents import PLANS, RECORDS, Documents, Folder
from raymond.loops.formats import item_ids
from raymond.loops.ledger import Ledger
from raymond.loops.settings import STORIES, Settings
from raymond.loops.spec_files import read_tasks
from raymond.loops.story_source import StorySource

TWICE = "\n### 1.4.1. Also this\n\n**Verification:** `true`\n"


def plan(path: Path, spec: str, prd: str) -> Documents:
    for name, text in {SPEC: spec, "docs/prd.md": prd, STATUS: '{"stories": []}'}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, "utf-8")
    return Folder(str(path), "docs", str(path), (*RECORDS, *PLANS))


@pytest.mark.slow
def test_a_broken_status_file_pauses_the_loop_and_is_never_overwritten(tmp_path: Path) -> None:
    night = Planned(tmp_path, "echo ITERATION_COMPLETE")
    assert night.stories("--task-loop", "--attempts", "1", "--pause-on-fail").code == 3
    kept = night.text(STATUS)
    take_over(night, "{\n")
    night.agent(BOTH)
    done = night.stories(verb="resume")
    assert done.code == 3, done.err
    assert night.text(STATUS) == "{\n"
    assert "repair docs/prd-status.json: " in night.room.raymond("inbox").stdout
    assert night.stories(verb="resume").code == 3, "it is still broken"
    assert night.text(STATUS) == "{\n"
    take_over(night, kept)
    night.stories(verb="resume")
    assert {id: one["passes"] for id, one in night.status.items()} == {"US-1": False, "US-2": True}


def take_over(night: Planned, status: str) -> None:
    """Write another status into the checkout, and let it count."""
    night.write({STATUS: status})
    done = night.room.raymond("story-loop", "edit", "--from-checkout")
    assert (done.returncode, done.stderr) == (0, f"{STATUS} taken over\n")


def test_a_second_task_with_the_same_id_lets_its_story_be_passed_over(tmp_path: Path) -> None:
    found = plan(tmp_path, TASKS + TWICE, PRD)
    chosen = StorySource(found, Settings(loop=STORIES)).look(Ledger()).selection
    assert [one.id for one in chosen.ready] == ["US-2"]
    [(id, why)] = [(one.item.id, one.reason) for one in chosen.passed_over]
    assert (id, why) == ("US-1", f"there are two tasks 1.4.1: {SPEC}:1 and {SPEC}:11")


def test_every_name_that_stands_for_a_task_finds_it(tmp_path: Path) -> None:
    known = read_tasks(plan(tmp_path, TASKS.replace("1.4.2", "1.4.1a") + "\n### 1.40.1. Other\n", PRD))
    for name in ("1", "1.4", "1.4.1", "1.4.1a", "1.40", "1.40.1", "1.", "", "4", "2"):
        assert [one.task.id for one in known.in_group(name)] == [id for id in known.tasks if item_ids.belongs(id, name)]
    assert [one.task.id for one in known.in_group("1.4.1")] == ["1.4.1", "1.4.1a"]
