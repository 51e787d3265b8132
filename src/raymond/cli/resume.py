"""`raymond resume`: continue a run that was stopped, paused or killed."""

import sys

import click

from raymond.cli import background, choice, flags, foreground, moves
from raymond.cli.flags import ResumeFlags
from raymond.cli.help import Command
from raymond.cli.names import RUN
from raymond.cli.resume_usage import check, pair
from raymond.control import inside, naming, request, reviews, runs
from raymond.control.drive import Resumption
from raymond.control.handle import RunHandle
from raymond.faces import errors, summary, words


@click.command("resume", cls=Command)
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
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
        from raymond.cli import resume_all

        return resume_all.resume(given, how)
    run = choice.change(id_, "change" if given.agent or given.changes else "resume")
    if not id_ and naming.actable([runs.row(run.project, run.id)], "resume"):
        print(f"resuming {run.id}", file=sys.stderr)
    request.check_resume(run.project, run.start)
    if given.show.notify:
        inside.check_person("resume --notify")
    run.trusts_now = given.run["trust_project"]
    foreground.check(given.show)
    if given.renew or given.show.detach or given.changes or given.agent or given.cd:
        folded = run.read()
        if folded.final_status == "cancelled" or (folded.is_over and not given.agent and not given.cd):
            return foreground.drive(run, given.show, how)
        if not runs.is_driven(run.project.run(run.id)):
            request.check_limits(folded, given.changes)
    if given.cd:
        run = _move(run, given)
    if run.start.loop:
        from raymond.cli import loop_resuming

        loop_resuming.prepare(run, asks=False)
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
    left = moves.ask(run, given)
    if left:
        print(left, file=sys.stderr)
        return 0
    if reviews.nothing_else(run.project, run.id):
        return _wait_for_person(run, given)
    choice.warn_of_company(run)
    return (background.start if given.show.detach else foreground.drive)(run, given.show, how)


def _wait_for_person(run: RunHandle, given: ResumeFlags) -> int:
    """Say that only a person can make it continue; the exit code of a run that waits for one."""
    print(f"nothing to resume until a person decides: raymond review {run.id}", file=sys.stderr)
    if given.show.as_json:
        found = run.read()
        return summary.tell_ending(found, runs.undriven_status(found), as_json=runs.whole(run.project, run.id))
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
