"""Report: what a run came to, in one form for loops and other runs: what was done, what failed, what waits for you."""

from msgspec import Struct

from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.control.runs import RunRow
from raymond.faces import words
from raymond.faces.next_commands import next_command
from raymond.loops import claims, markers, summary
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
    loop = LoopRun(project, run) if run.start.loop else None
    return summary.text(loop) + summary.elsewhere(loop) if loop else ""


def _of_loop(row: RunRow, loop: LoopRun) -> Report:
    ledger = loop.ledger
    red = [one for one in ledger.entries[-1:] if one.verdict == RED]  # an iteration after a red one went on from there
    failed = [one for one in ledger.failed if one.verdict != RED] + red
    return Report(
        run=row,
        done=[one.title for one in ledger.done if one.verdict != PENDING],
        failed=[Failure(one.title, f"{one.verdict}: {error_line(one.error, _WHY)}") for one in failed],
        claimed_while_red=claims.of(loop.project.run(loop.id), markers.claims).count,
        next=[*filter(None, [summary.place(loop)]), *summary.advice(loop)],
    )


def _of_run(row: RunRow, run: Run, project: Project) -> Report:
    said = claims.of(project.run(row.workflow_id))
    errors = {f"{words.who(one)} in {one.state}": (words.stuck(one), one.id) for one in failed_agents(run)}
    errors |= {f"the gate of {state}": ("it stayed red", agent) for agent, state in run.red.items()}
    failed = [
        Failure(title, error_line(f"{why}\n{said.red.get(agent, '')}", _WHY)) for title, (why, agent) in errors.items()
    ]
    then = f"raymond attach {row.workflow_id}" if row.driven else next_command(run)
    is_done = row.status == "completed" and not run.saved
    return Report(run=row, failed=failed, claimed_while_red=said.count, next=[] if is_done else [then])
