"""Report: what a run came to, in one form for loops and other runs: what was done, what failed, what waits for you."""

from msgspec import Struct

from raymond import pasted
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.control.runs import RunRow
from raymond.faces import words
from raymond.faces.next_commands import next_command
from raymond.faces.summary import one_line
from raymond.loops import claims, summary
from raymond.loops.formats.foreign_text import error_line
from raymond.loops.ledger import PENDING, RED
from raymond.loops.loop_run import LoopRun
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.views.status import failed_agents

_WHY = 300


class Failure(Struct, frozen=True):
    """Something that did not count, and why."""

    title: str
    why: str


class Report(Struct, frozen=True, kw_only=True):
    """What a run came to; its JSON is what `raymond summary --json` prints of it."""

    run: RunRow
    done: list[str] = []
    failed: list[Failure] = []
    claimed_while_red: int = 0
    """How often an agent said that it was done while its check was red."""
    next: list[str] = []
    """What a person should do, with the commands."""


def of(row: RunRow) -> Report:
    """The report of a run."""
    project = runs.project_of(row)
    run = RunHandle(project, row.workflow_id).read()
    return _of_loop(row, LoopRun(project, run)) if run.start.loop else _of_run(row, run, project)


def whole(row: RunRow) -> str:
    """All that there is to tell of a loop; empty for other runs."""
    project = runs.project_of(row)
    run = RunHandle(project, row.workflow_id).read()
    if not run.start.loop:
        return ""
    there = [f"\nits commands are for another folder: {one}\n" for one in _place(project)]
    return "".join([summary.text(LoopRun(project, run)), *there])


def _place(project: Project) -> list[str]:
    """Where the commands of a loop have to be typed, if not here."""
    return [] if project == runs.here() else [f"cd {pasted.word(project.tree, 'PROJECT')}"]


def _of_loop(row: RunRow, loop: LoopRun) -> Report:
    ledger = loop.ledger
    red = [one for one in ledger.entries[-1:] if one.verdict == RED]  # an iteration after a red one went on from there
    failed = [one for one in ledger.failed if one.verdict != RED] + red
    return Report(
        run=row,
        done=[one.title for one in ledger.done if one.verdict != PENDING],
        failed=[Failure(one.title, f"{one.verdict}: {error_line(one.error, _WHY)}") for one in failed],
        claimed_while_red=claims.of(loop),
        next=[] if row.driven else [*_place(loop.project), *summary.advice(loop)],
    )


def _of_run(row: RunRow, run: Run, project: Project) -> Report:
    failed = [Failure(f"{words.who(one)} in {one.state}", one_line(words.stuck(one))) for one in failed_agents(run)]
    then = f"raymond attach {row.workflow_id}" if row.driven else next_command(run)
    is_done = row.status == "completed" and not run.saved
    return Report(run=row, failed=failed, next=[] if is_done else [then])
