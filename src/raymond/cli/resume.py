"""`raymond resume`: continue a run that was stopped, paused, killed or answered, or all that were cut off."""

import os
import sys

from msgspec.structs import replace

from raymond.cli import choice, driving, flags, moves, prompt
from raymond.cli.command import argument, as_command
from raymond.cli.flags import ResumeFlags, ShowFlags
from raymond.cli.moves import check, pair
from raymond.cli.values import RUN
from raymond.control import drive, handle, inside, left_requests, naming, request, reviews, runs
from raymond.control.drive import LeftOut, Resumption
from raymond.control.handle import RunHandle
from raymond.control.runs import RunRow
from raymond.errors import Error, NotContinued, RunDriven
from raymond.faces import errors, words
from raymond.faces.foreign_text import said
from raymond.faces.summary import next_command
from raymond.text import visible

_AFTER_ANSWER = Resumption(retries=False, by_itself=True)
"""Somebody has said what they want of one agent: those that failed or are paused stay so."""
ANSWER_KEPT = 5
"""The exit code when the answer is kept and the run does not continue."""


@as_command("resume", grouped=True)
@argument("id_", metavar="[ID]", type=RUN, required=False)
@flags.resuming
def command(id_: str | None, given: ResumeFlags) -> int:
    """Continue run ID where it left off.

    Failed and paused agents try again, unless the process that drove the run died or --agent names one of them. With
    --all or --here, runs continue in the background.
    """
    check(id_, given)
    how = Resumption(
        restart=given.restart,
        at_once=given.at_once,
        fresh=given.fresh and not given.agent,
        force=given.force,
        retries=not given.agent,
    )
    if given.every or given.here:
        return resume_all(given, how)
    run = choice.change(id_, "change" if given.agent or given.changes else "resume")
    if not id_ and naming.actable([runs.row(run.project, run.id)], "resume"):
        print(f"resuming {run.id}", file=sys.stderr)
    request.check_resume(run.project, run.start)
    if given.show.notify:
        inside.check_person("resume --notify")
    run.trusts_now = given.run["trust_project"]
    driving.check_log_file(given.show)
    if given.renew or given.show.detach or given.changes or given.agent or given.cd:
        folded = run.read()
        if folded.final_status == "cancelled" or (folded.is_over and not given.agent and not given.cd):
            return driving.drive(run, given.show, how)
        if not runs.is_driven(run.project.run(run.id)):
            request.check_limits(folded, given.changes)
    if given.cd:
        run = _move(run, given)
    if run.start.loop:
        from raymond.cli import loop_verbs

        loop_verbs.prepare(run, asks=False)
    if given.renew:
        from raymond.control.upgrade import upgrade

        renamed = dict(map(pair, given.renamed))
        to = given.goto or ""
        done = upgrade(run.project, run.id, renamed, to=to, force=given.force, strict=given.run["strict"])
        print(words.line(done.changed), file=sys.stderr)
        sys.stderr.write(errors.warnings(done.warnings))
    elif given.run["strict"]:
        from raymond.control import upgrade as upgrades

        upgrades.check(run.project, run.read())
    left = moves.request_for(run, given)
    if left:
        print(left, file=sys.stderr)
        return 0
    if reviews.nothing_else(run.project, run.id):
        return _wait_for_person(run, given)
    driving.warn_of_company(run)
    return driving.go(run, given.show, how)


def _wait_for_person(run: RunHandle, given: ResumeFlags) -> int:
    """Say that only a person can make it continue; the exit code of a run that waits for one."""
    print(f"nothing to resume until a person decides: raymond review {run.id}", file=sys.stderr)
    if given.show.as_json:
        return driving.tell_ending(run, run.read(), as_json=True)
    return 3


def _move(run: RunHandle, given: ResumeFlags) -> RunHandle:
    """Continue in the directory that the project was moved to."""
    from raymond.control import moving

    before = run.read()
    project, moved = moving.move(run.project, run.id, given.cd or "", force=given.force)
    print(words.line(moved), file=sys.stderr)
    for agent in moving.fresh(before, moved.lost):
        print(f"{agent} continues without its conversation, which could not be brought along", file=sys.stderr)
    return RunHandle(project, run.id, trusts_now=run.trusts_now)


# All that were cut off


def resume_all(given: ResumeFlags, how: Resumption) -> int:
    """Show the runs that were interrupted and their budgets, ask if somebody is here, and resume them.

    Where nobody is, as under cron, they are resumed: what a person stopped is not among them.
    """
    how = replace(how, by_itself=True)
    rows, worst = _interrupted(here=given.here)
    if rows and not given.show.quiet:
        choice.show(rows)
    if not rows and not given.show.quiet and prompt.can_ask_on_stderr():
        print("nothing to resume", file=sys.stderr)
    if given.dry_run:
        for row in rows:
            print(row.workflow_id)
        return worst
    if rows and not prompt.agrees_to_all("resume", len(rows), yes=given.yes, alone=True):
        print("nothing was resumed", file=sys.stderr)
        return 1
    for row in rows:
        run = handle.from_row(row)
        run.trusts_now = given.run["trust_project"]
        worst = max(worst, _resume_one(run, given.show, how))
    return worst


def _resume_one(run: RunHandle, show: ShowFlags, how: Resumption) -> int:
    """Resume one of them; what somebody else has resumed, stopped or ended since it was listed is no failure."""
    try:
        _launch(run, show, how)
        driving.announce(run, show)
    except NotContinued as left:
        print(visible(str(left)), file=sys.stderr)
    except RunDriven:
        print(f"{run.id} is running already", file=sys.stderr)
    except Error as error:
        print(f"{run.id} was not resumed\n{errors.error(error)}", file=sys.stderr)
        return error.exit_code
    return 0


def _launch(run: RunHandle, show: ShowFlags, how: Resumption) -> None:
    show = driving.with_last_log(run, show)
    if not run.start.loop:
        return driving.launch(run, show, how)
    from raymond.cli import loop_verbs

    with loop_verbs.prepared(run):
        driving.launch(run, show, how)


def _interrupted(*, here: bool) -> tuple[list[RunRow], int]:
    """The runs to resume, and the exit code that follows from those that cannot be read."""
    rows: list[RunRow] = []
    worst = 0
    if here and not runs.here().ids():
        print(errors.error(naming.nothing_in(runs.here())).removeprefix("error: "), file=sys.stderr)
    for root, why in runs.unreadable(every=not here).items():
        worst = max(worst, _tell_error(Error(f"{root}: {why}", hint="the runs of this project were not looked at")))
    for project in runs.projects_of(every=not here):
        for found in drive.resumable(project):
            if isinstance(found, Error):
                worst = max(worst, _tell_error(found))
            elif isinstance(found, LeftOut):
                print(said(f"{found.id} is left out: {found.why}; {found.then}", sys.stderr), file=sys.stderr)
            elif not here and not os.path.isdir(project.tree):
                print(said(f"{found} is left out: {project.tree} is gone", sys.stderr), file=sys.stderr)
            else:
                rows.append(runs.row(project, found))
    return rows, worst


def _tell_error(error: Error) -> int:
    print(errors.error(error), file=sys.stderr)
    return error.exit_code


# After an answer


def continue_run(run: RunHandle, *, attach: bool, verb: str = "answered") -> int:
    """Continue a run that no process drives; with `attach`, here. `verb` says what somebody has just done."""
    if not attach and drive.asked_by_step():
        print(f"{verb}; {left_requests.onward(run.project, run.id)}", file=sys.stderr)
        return 0
    try:
        request.check_resume(run.project, run.start)
        if run.start.loop:
            from raymond.cli import loop_verbs

            loop_verbs.prepare(run, asks=False)
        show = driving.with_last_log(run, ShowFlags())
        if attach:
            return driving.drive(run, show, _AFTER_ANSWER)
        driving.launch(run, show, _AFTER_ANSWER)
    except NotContinued as left:
        return _tell_kept(run, str(left), verb, is_told=bool(left.again))
    except RunDriven:  # another command has resumed it since, and has read the answer
        if attach:
            from raymond.cli import wait

            return wait.watch(run)
    except Error as error:
        return _tell_kept(run, errors.error(error), verb, is_told=bool(error.again))
    print(f"{verb}; {run.id} continues in the background: raymond attach {run.id}", file=sys.stderr)
    return 0


def _tell_kept(run: RunHandle, why: str, verb: str, *, is_told: bool = False) -> int:
    """Say why the run does not continue, unless another process has driven it to its end meanwhile.

    `is_told`: the reason ends in the command that continues it, or ends it.
    """
    now = run.read()
    if now.is_over:
        print(f"{verb}; {run.id} has ended: raymond logs {run.id}", file=sys.stderr)
        return 0
    kept = "the answer is kept" if verb == "answered" else f"it is {verb}"
    then = "" if is_told else f"; to continue: {next_command(now)}"
    print(f"{why}\n{kept}, nothing was started{then}", file=sys.stderr)
    return ANSWER_KEPT
