"""`raymond prd`: the stories of a project, and what is known of them."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click
from msgspec import Struct

from raymond import pasted
from raymond.cli import loop_verbs, prompt
from raymond.cli.by_click import HELP_NAMES, Group
from raymond.cli.command import argument, option
from raymond.control import runs
from raymond.errors import UsageError
from raymond.faces.foreign_text import said, width_of
from raymond.loops import finding, prd_import, prd_init, preflight
from raymond.loops.documents import PRD, PRD_STATUS, Documents
from raymond.loops.prd_import import Import
from raymond.loops.prd_init import Survey

_DOCS = option("--docs", default="docs", metavar="DIR", help="The folder of prd.md and the specs (docs).")
_YES = option("--yes", is_flag=True, help="Do not ask.")


@click.group("prd", cls=Group, context_settings=HELP_NAMES, no_args_is_help=False)
def command() -> None:
    """Keep the status of the stories in docs/prd.md, or import stories from elsewhere."""


@command.define("status-init")
@_DOCS
@option("--yes", is_flag=True, help="Do not ask; links that rest on words in common are taken too.")
@option("--json", "as_json", is_flag=True, help="One JSON document.")
def status_init(docs: str, yes: bool, as_json: bool) -> int:
    """Build docs/prd-status.json from docs/prd.md and the implementation specs.

    What the file holds already is kept: passes, history and fields of others.
    """
    found = preflight.folder_here(docs, needs_git=False)
    again = Again("status-init", docs, [("--yes", yes), ("--json", as_json)])
    for name in ("", PRD):
        prd_init.check_top(found, name, again.at(found))
    survey = prd_init.look(found)
    if not as_json:
        print("\n".join(prd_init.table(survey, width_of(sys.stdout))))
        sys.stdout.flush()
    for line in prd_init.reports(survey):
        loop_verbs.tell(line)
    medium = yes
    if not yes and prompt.can_ask() and not as_json:
        if not prompt.agrees(f"Write {survey.documents.shown(PRD_STATUS)}? [Y/n]", yes=False):
            loop_verbs.tell("nothing was written")
            return 0
        medium = survey.has_medium and prompt.wants("Take the medium ones too? [y/N]")
    elif not yes and survey.has_medium:
        loop_verbs.tell("only links with high confidence are taken: --yes takes the medium ones too")
    with _alone(survey.documents):
        fresh = prd_init.look(survey.documents)
        if medium and not yes and fresh.links != survey.links:
            loop_verbs.tell("the links have changed meanwhile: only those with high confidence are taken")
            medium = False
        return _write(fresh, medium=medium, as_json=as_json)


@contextmanager
def _alone(found: Documents) -> Iterator[None]:
    """No loop is at work here: what is written would be taken for what its agent did, and put back."""
    project = runs.here()
    with prd_init.alone(found):
        here = next((one for one in finding.open_loops(project) if one.settings.way == "here"), None)
        if here:
            shows = finding.command(here, "status")
            raise UsageError(f"a {here.loop} works in this checkout: {here.id}", hint=f"{shows} shows it")
        yield


def _write(survey: Survey, *, medium: bool, as_json: bool) -> int:
    status = prd_init.status_of(survey, datetime.now(UTC), medium=medium)
    aside = prd_init.write(survey, status)
    if aside:
        loop_verbs.tell(f"the broken one is now {aside}")
    if as_json:
        print(json.dumps(prd_init.document(survey, status, medium=medium)))
    else:
        print(said(prd_init.told(survey, status), sys.stdout))
    return 0


class Again(Struct, frozen=True):
    """A command as it was typed, for the top of the repository."""

    verb: str
    docs: str
    flags: list[tuple[str, str | bool | None]]
    file: str = ""

    def at(self, found: Documents) -> str:
        """The command to paste."""
        up = os.path.relpath(os.path.realpath(found.top), os.path.realpath(found.cwd))
        words = ["raymond", pasted.flag("-C", up, "DIR"), "prd", self.verb]
        if self.file:
            words.append(pasted.word(os.path.relpath(os.path.realpath(self.file), os.path.realpath(found.top)), "FILE"))
        for name, value in [("--docs", self.docs if self.docs != "docs" else None), *self.flags]:
            words += [name] if value is True else [pasted.flag(name, value, "TEXT")] if value else []
        return " ".join(words)


@command.define("import")
@argument("file", metavar="FILE")
@_DOCS
@option("--as", "kind", choices=prd_import.KINDS, help="What FILE is, if its content does not tell.")
@option("--verify", metavar="COMMAND", default="", help="The check of every task that is imported.")
@_YES
@option("--dry-run", is_flag=True, help="Show what would be added; nothing is written.")
def import_(file: str, docs: str, kind: str | None, verify: str, yes: bool, dry_run: bool) -> int:
    """Add the stories of FILE to docs/prd.md: a prd.json of Ralph, a checklist such as fix_plan.md, or a plan of
    ralphex.

    Each gets tasks in a new implementation spec. What was imported before is not added again. Without a terminal it
    needs --yes.
    """
    found = preflight.folder_here(docs, needs_git=False)
    given: list[tuple[str, str | bool | None]] = [("--as", kind), ("--verify", verify), ("--yes", yes)]
    again = Again("import", docs, [*given, ("--dry-run", dry_run)], file).at(found)
    prd_init.check_top(found, "", again)
    if prd_init.is_at_top(found, PRD):
        loop_verbs.tell(f"warning: {found.shown(PRD)} is new here, and the repository has one at its top: {again}")
    plan = prd_import.look(found, file, kind or "", verify)
    for line in prd_import.warnings(plan):
        loop_verbs.tell(f"warning: {line}")
    for line in prd_import.lines(plan):
        print(said(line, sys.stdout))
    if dry_run or not (plan.stories or plan.unrecorded):
        print("nothing was written" if dry_run else "nothing is new")
        return 0
    sys.stdout.flush()
    if not yes and not prompt.can_ask():
        raise UsageError("nothing was written: there is nobody to ask here", hint="if this is what you want, add --yes")
    if not prompt.agrees(f"{prd_import.question(plan)} [Y/n]", yes=yes):
        loop_verbs.tell("nothing was written")
        return 0
    with _alone(plan.documents):
        for line in prd_import.write(_read_again(plan, kind or "", verify), datetime.now(UTC)):
            print(said(line, sys.stdout))
    return 0


def _read_again(plan: Import, kind: str, verify: str) -> Import:
    """The same import as the documents are now: somebody may have changed them while a person read."""
    fresh = prd_import.look(plan.documents, plan.file, kind, verify)
    if (fresh.plan, fresh.command) != (plan.plan, plan.command):
        raise UsageError(f"{plan.file} has changed meanwhile, so nothing was written", hint="import it again")
    if (fresh.stories, fresh.unrecorded) != (plan.stories, plan.unrecorded):
        loop_verbs.tell("the documents have changed meanwhile; this is added now:")
        for line in prd_import.lines(fresh):
            print(said(line, sys.stdout))
    return fresh
