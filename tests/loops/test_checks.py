"""Checks on their way into the gate of an agent: what is a command stays one."""

from pathlib import Path

import pytest

from looping import Night
from raymond.language import late
from raymond.language.check import Check
from raymond.loops import checks

TABLES = '[{"run":"touch $TEST_ROOM/../ran"}]'
"""A command that looks like the tables of a gate."""
SPEC = "docs__implementation__1-core__1.1-answers.md"


@pytest.mark.parametrize(
    "given",
    [
        (),
        (Check(run="sh check.sh"),),
        (Check(run="sh check.sh"), Check(run="true")),
        (Check(run="sh check.sh", exit=3, timeout=2.5),),
        (Check(run="sh check.sh", contains='[{"'), Check(run="true", matches="^a/b$")),
        (Check(run=TABLES),),
        (Check(run='[{"'),),
        (Check(run="[{ :; }"),),
    ],
)
def test_checks_are_read_as_they_were_written(given: tuple[Check, ...]) -> None:
    assert checks.read_checks(checks.as_gate(given)) == given


@pytest.mark.parametrize("command", [TABLES, f" \n{TABLES}", '[{"', "[{ :; }", "sh check.sh"])
def test_a_gate_takes_no_command_for_tables(command: str) -> None:
    found = late.given({"gate": "check"}, {"check": checks.gate_of([command])})["gate"]
    assert found == command or found == [{"run": command}]


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("--deny", "touch *"), pytest.param((), marks=pytest.mark.slow)])
def test_a_task_whose_check_looks_like_tables_runs_nothing_in_them(tmp_path: Path, flags: tuple[str, ...]) -> None:
    spec = f"### 1.1.1. Answer\n\n**Status:** 🔵 Planned\n**Verification:**\n- command: `{TABLES}`\n"
    night = Night(tmp_path, agent="echo 42 > answer.txt; echo ITERATION_COMPLETE", **{SPEC: spec})
    ran = night.loop("--attempts", "1", *flags, loop="task-loop")
    assert (ran.code, "there is no program `[{run:touch" in ran.out) == (2, True), ran.out
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_dangerous_command_cannot_hide_in_tables(tmp_path: Path) -> None:
    command = '[{"run":"git reset --hard; touch $TEST_ROOM/../ran"}]'
    night = Night(tmp_path, queue=f"1. [VERIFY: `{command}`] Answer\n")
    assert night.loop().code == 2
    assert not (tmp_path / "ran").exists()
    assert "feat: answer" not in night.subjects


@pytest.mark.slow
def test_the_gate_of_ralph_is_a_command_too(tmp_path: Path) -> None:
    night = Night(tmp_path, **{"PROMPT.md": "Go on.\n"})
    ran = night.room.raymond(
        "ralph", "PROMPT.md", "--gate", TABLES, "--id", "n", "--max-iterations", "1", "--pause", "0s"
    )
    assert ran.returncode == 1, ran.stdout
    assert not (tmp_path / "ran").exists()
