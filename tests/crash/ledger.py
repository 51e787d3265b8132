"""What scripts note outside of everything Raymond keeps: which attempt of which visit really began and ended."""

from collections import defaultdict

from msgspec import Struct

from crash.runs import Story

NOTE = 'note() { echo "$1 $RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_ATTEMPT $RAYMOND_STEP_KEY" >> "$LEDGER"; }\n'
"""The beginning of a script; it says `note begin`, does its work and says `note end`. LEDGER is the file."""


class Line(Struct):
    """One note of a script."""

    what: str
    agent: str
    state: str
    attempt: int
    key: str


def read(notes: str) -> list[Line]:
    """All notes in order."""
    lines = [line.split() for line in notes.splitlines()]
    return [Line(what, agent, state, int(attempt), key) for what, agent, state, attempt, key in lines]


def check(notes: str, told: Story) -> None:
    """A script whose end was journaled never runs again, and two attempts never run at once."""
    seen: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in read(notes):
        seen[line.key].append((line.attempt, line.what))
    scripts = {
        f"{told.run.start.key}-{visit.agent}-{visit.entered}": attempt
        for visit, attempt in told.attempts.items()
        if not visit.state.endswith(".md")
    }
    assert seen.keys() == scripts.keys(), "every script ran, and no other"
    for key, last in scripts.items():
        lines = seen[key]
        assert lines == sorted(lines, key=lambda one: (one[0], one[1] != "begin")), f"attempts at once: {key} {lines}"
        assert len(lines) == len(set(lines)), f"an attempt ran twice: {key} {lines}"
        assert lines[-2:] == [(last, "begin"), (last, "end")], f"not the last attempt finished: {key} {lines}"
