"""What a step may ask for: anything of the runs that were started in it, a stop of its own, and nothing else."""

from itertools import product

import pytest

from raymond.machine.sender import Sender, barred, who

KINDS = ("answer", "stop", "pause", "retry", "move", "result", "give_up", "limits", "resume")


def asked(kind: str, *steps: str, inside: tuple[str, ...] = ()) -> bool:
    """Whether a process below the steps of these runs may ask it of run `r`, started inside of others."""
    return barred("r", inside, kind, Sender(way="socket", steps=list(steps))) is None


@pytest.mark.parametrize("kind", KINDS)
def test_who_belongs_to_no_step_may_ask_for_anything(kind: str) -> None:
    assert asked(kind)
    assert barred("r", (), kind, None) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_may_only_end_its_own_run(kind: str) -> None:
    assert asked(kind, "r") == (kind in ("stop", "pause"))
    assert not asked(kind, "other")


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_may_ask_anything_of_a_run_that_was_started_in_it(kind: str) -> None:
    assert asked(kind, "outer", inside=("outer",))
    assert asked(kind, "outer", inside=("middle", "outer"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("stop", "pause")])
def test_being_also_below_a_run_it_was_not_started_in_takes_that_right(kind: str) -> None:
    for steps in (("r", "outer"), ("outer", "r"), ("sibling", "outer"), ("outer", "sibling")):
        assert not asked(kind, *steps, inside=("outer",)), steps


def test_a_person_is_somebody_at_a_terminal_that_no_step_has_started() -> None:
    for way, terminal, steps in product(("face", "socket", "command", "inbox"), ("", "/dev/pts/1"), ([], ["r"])):
        sender = Sender(way=way, terminal=terminal, steps=steps)  # type: ignore[arg-type]
        assert not Sender(way=way, terminal=terminal, steps=steps, agent="claude").is_person  # type: ignore[arg-type]
        assert sender.is_person == (way != "inbox" and bool(terminal) and not steps)


@pytest.mark.parametrize(
    ("sender", "named"),
    [
        (None, ""),
        (Sender(way="face", terminal="/dev/pts/1"), ""),
        (Sender(way="socket", pid=7), ""),
        (Sender(way="command", steps=["r"]), "step"),
        (Sender(way="socket", steps=["outer"], unknown=True), "step"),
        (Sender(way="socket", unknown=True), "unknown"),
        (Sender(way="inbox"), "unknown"),
    ],
)
def test_who_is_no_person_is_named(sender: Sender | None, named: str) -> None:
    assert who(sender) == named
