"""`raymond adopt`: take over runs that an earlier release kept in the project."""

import sys

import click

from raymond.control import adopt, inside, runs
from raymond.control.adopt import Candidate
from raymond.errors import Error, UsageError
from raymond.faces import adoption, clock, errors
from raymond.text import visible


@click.command("adopt")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Adopt all of them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(ids: tuple[str, ...], every: bool, yes: bool) -> int:
    """Take over runs that an earlier release kept in .raymond: shows what each may do, checks its files, and asks."""
    inside.check_person("adopt")
    project = runs.here()
    chosen = adopt.waiting(project) if every else adopt.choose(project, ids)
    if not chosen:
        return _tell(adopt.waiting(project), every)
    worst = 0
    for id in chosen:
        try:
            _adopt(adopt.examine(project, id), yes)
        except Error as error:
            print(errors.error(error), file=sys.stderr)
            worst = max(worst, error.exit_code)
    return worst


def _tell(waiting: list[str], every: bool) -> int:
    if waiting and not every:
        print("\n".join(map(visible, waiting)))
        print("raymond adopt ID shows what a run may do, and asks", file=sys.stderr)
    else:
        print("no run of an earlier release is waiting here", file=sys.stderr)
    return 0


def _asked() -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "cannot ask whether to adopt it without a terminal", hint="add --yes if you agree with the above"
        )
    return click.confirm("adopt it?", err=True)


def _adopt(found: Candidate, yes: bool) -> None:
    agreed = False
    try:
        with clock.of(sys.stderr):
            shown = adoption.lines(found.run, found.status, is_tracked=found.is_tracked)
        print("\n".join(shown), file=sys.stderr)
        agreed = yes or _asked()
        if agreed:
            adopt.accept(found)
    finally:
        if not agreed:
            adopt.discard(found)
    word = "adopted" if agreed else "left where it was"
    print(f"{found.folder.id} {word}", file=sys.stderr)
