"""docs/plans.md, typed from an empty folder as it stands on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, blocks, left_out, room_with_git
from raymond.loops.formats import prd_status, queue
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "plans.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = room_with_git(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_on_the_page_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_the_item_on_the_page_that_stands_for_tasks_is_one() -> None:
    item, _ = left_out(PAGE)
    found = queue.read(f"## {queue.TITLE}\n\n{item}")
    assert found.warnings == ()
    assert [(one.verification.kind, one.metadata.tasks) for one in found.items] == [("task-loop", ("1.1.1", "1.1.2"))]


def test_the_status_file_on_the_page_is_one() -> None:
    _, example = left_out(PAGE)
    status = prd_status.read(example)
    assert prd_status.with_statistics(status) == status
    assert [*status] == ["version", "lastUpdated", "prdFile", "stories", "statistics"]


def test_the_page_has_a_walk_through_for_each_kind_of_plan() -> None:
    typed = " ".join(block.line for block in blocks(PAGE) if isinstance(block, Typed))
    assert "raymond continuous-session start" in typed
    assert "raymond prd status-init" in typed
    assert "raymond prd import" in typed
    assert "raymond story-loop start" in typed


def test_the_page_shows_a_fix_task() -> None:
    typed = " ".join(block.line for block in blocks(PAGE) if isinstance(block, Typed))
    start = "raymond task-loop start -q --replies replies.yaml --id night --pause 0s"
    assert f"{start} --attempts 1 --on-fail create-fix-task" in typed
