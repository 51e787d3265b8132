"""Lists of ids: what is read, and what is never left out in silence."""

import pytest

from raymond.loops.formats import item_ids
from raymond.loops.formats.document import Document
from raymond.loops.formats.item_ids import IdList


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1.4.1", ("1.4.1",)),
        ("1.4.1, `1.4.2`; [1.5](implementation/9-x/9.9-y.md) and 2.", ("1.4.1", "1.4.2", "1.5", "2")),
        ("1.4.1 & **1.4.2b** AND 1.4.1", ("1.4.1", "1.4.2b")),
        ("- [ ] 1.4.1\n- `1.4.2`\n3. 1.4.3", ("1.4.1", "1.4.2", "1.4.3")),
        ("1.1.1.1, 1.1.1zza", ("1.1.1.1", "1.1.1zza")),
        ("1.4.1 <!-- 1.4.2 -->", ("1.4.1",)),
        ("- 1.4.1.\n- 1.4.2.", ("1.4.1", "1.4.2")),
        ("None.", ()),
        ("–", ()),
        ("", ()),
    ],
)
def test_a_list_of_ids_is_read_as_people_write_it(text: str, ids: tuple[str, ...]) -> None:
    lines = Document(text).counted.split("\n")
    assert item_ids.read_list(lines, item_ids.TASK_IDS) == IdList(ids)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("1.1.1-1.1.3", "-"),
        ("1.1.1 – 1.1.3", "–"),
        ("1.1.1 … 1.1.3", "…"),
        ("1.1.1...1.1.3", "...1.1.3"),
        ("1.1.1 through 1.1.3", "through"),
        ("1.1.1 to 1.1.3", "to"),
        ("`1.1.1`-`1.1.3`", "-"),
        ("1.1.1a-c", "-c"),
        ("1.1.1, 1.1.x", "1.1.x"),
        ("1.1.1 (the parser), 1.1.2", "(the parser)"),
        ("somebody", "somebody"),
        ("x" * 70, f"{'x' * 60}…"),
    ],
)
def test_what_is_no_id_is_told(text: str, rest: str) -> None:
    assert item_ids.read_list([text], item_ids.TASK_IDS).rest == rest


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("US-1, [SHOP2-14](#x) and US-3", IdList(("US-1", "SHOP2-14", "US-3"))),
        ("US-1 to US-3", IdList(("US-1", "US-3"), "to")),
        ("US-1-US-3", IdList(("US-1", "US-3"), "-")),
        ("US-1–US-3", IdList(("US-1", "US-3"), "–")),
        ("us-2", IdList((), "us-2")),
    ],
)
def test_stories_are_read_the_same_way(text: str, found: IdList) -> None:
    assert item_ids.read_list([text], item_ids.STORY_IDS) == found
