"""What a person changed in a queue, and what was written into it meanwhile."""

import pytest

from raymond.loops.formats import queue


def log(*items: str) -> str:
    return "# Session: x\n\n## Next Steps\n\n" + "".join(f"- {one}\n" for one in items) + "\n## Learnings\n\n_None._\n"


@pytest.mark.parametrize(
    ("before", "after", "now", "left"),
    [
        ("A B", "A B", "B", "B"),  # nothing was typed, and one is done
        ("A B", "A B C", "B", "B C"),  # added at the end
        ("A B", "C A B", "B", "C B"),  # added before the others
        ("A B C", "A D B C", "B C", "D B C"),
        ("A B", "A B C", "Fix:A B", "Fix:A B C"),  # an item in place of one that failed
        ("A B C", "A C", "B C Agent", "C Agent"),  # removed, while an agent proposed another
        ("A B C", "C B A", "Fix:A B C", "Fix:A C B"),  # reordered
        ("A B", "A B C", "B A", "B C A"),  # to be tried again, after the others
        ("A", "A B", "Fix:A", "Fix:A B"),
        ("A B", "A C B", "Fix:A B", "Fix:A C B"),
        ("A", "A Agent", "Agent", "Agent"),  # both added the same
        ("A", "A Old", "", "_None._"),  # done before
    ],
)
def test_both_sides_count(before: str, after: str, now: str, left: str) -> None:
    found = queue.with_edit(log(*before.split()), log(*after.split()), log(*now.split()), {"old"})
    assert [one.title for one in queue.read(found).items] == ([] if left == "_None._" else left.split())
    assert found.endswith("\n## Learnings\n\n_None._\n")


def test_an_item_that_was_blocked_and_changed_is_both() -> None:
    before, after = log("[VERIFY: x] A", "[VERIFY: x] B"), log("[VERIFY: y] A", "[x] [VERIFY: x] B")
    now = log("[BLOCKED: waits for a person] [VERIFY: x] A", "[VERIFY: x] B")
    expected = log("[BLOCKED: waits for a person] [VERIFY: y] A", "[x] [VERIFY: x] B")
    assert queue.with_edit(before, after, now) == expected
    assert queue.with_edit(before, before, now) == now, "who changes nothing unblocks nothing"


def test_an_edit_that_is_applied_again_changes_nothing() -> None:
    before, after, now = log("A", "B"), log("B", "A", "C"), log("Fix: A", "B")
    once = queue.with_edit(before, after, now)
    assert queue.with_edit(before, after, once) == once
