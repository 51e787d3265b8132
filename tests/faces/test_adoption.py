"""What a person sees of a run before they adopt it."""

from typing import Any

from builders import Play
from raymond.faces import adoption
from raymond.machine.prices import Price


def rows(**given: Any) -> list[tuple[str, str]]:
    """The name and the text of each line."""
    run = Play({"START.md": ""}, **given).run
    parted = [line.partition(":") for line in adoption.lines(run, "waiting", is_tracked=False)]
    return [(name, text.strip()) for name, _, text in parted]


def test_what_it_may_do_stands_last_just_above_the_question() -> None:
    told = rows(roots=["/r"] * 50, overrides={f"{n}.md": {"effort": "x"} for n in range(50)}, notify=["tell"])
    assert [name for name, _ in told[-5:]] == ["unknown", "turns", "budget", "notify", "rights"]


def test_of_many_things_the_first_few_and_their_number_are_shown() -> None:
    """Of tools, whole ones come first: the rest of a long list may hide one of them."""
    tools = [*(f"Bash(step {n}:*)" for n in range(500)), "Bash"]
    told = rows(allowed_tools=tools, notify=[f"target {n}" for n in range(7)])
    assert [text for name, text in told if name == "tool"] == [
        "Bash",
        *(f"Bash(step {n}:*)" for n in range(4)),
        "[and 496 more]",
    ]
    assert [text for name, text in told if name == "notify"] == [*(f"target {n}" for n in range(5)), "[and 2 more]"]


def test_what_makes_a_budget_worthless_is_shown() -> None:
    told = rows(budget=2.0, max_turns=999, unknown_turn_cost=0.0, prices={"m": Price(input=0.0, output=0.001)})
    assert [row for row in told if row[0] in ("price", "unknown", "turns", "budget")] == [
        ("price", "m: $0 and $0.001 for a million tokens in and out"),
        ("unknown", "$0 for a turn whose cost nobody reports"),
        ("turns", "at most 999"),
        ("budget", "$2.00"),
    ]


def test_blanks_and_marks_that_show_nothing_are_written_as_escapes() -> None:
    told = rows(notify=["nobody\u3164\u3164;\u2800touch\ufe0f\u034f pwned"])
    assert ("notify", r"nobody\u3164\u3164;\u2800touch\ufe0f\u034f pwned") in told
