"""Before a loop begins: what it would work through, what must hold, and what is said about what does not."""

import os
import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond import pasted
from raymond.errors import UsageError, WrongDirectory
from raymond.loops import documents, spec_files, starting, task_source
from raymond.loops.documents import (
    FAILURES,
    LEARNINGS,
    LOGS,
    PRD,
    PRD_STATUS,
    PROGRESS,
    SPECS,
    SUMMARIES,
    Documents,
    Folder,
)
from raymond.loops.formats import links, prd, prd_status, queue, task_spec
from raymond.loops.formats.prd import Prd, Story
from raymond.loops.formats.queue_item import PlanWarning
from raymond.loops.formats.state_file import Broken
from raymond.loops.ledger import Ledger
from raymond.loops.settings import SESSION, STORIES, TASKS, Settings
from raymond.loops.source import Looked, Selection, refused
from raymond.loops.sources import source_of
from raymond.loops.spec_files import Specs
from raymond.loops.starting import StartPoint
from raymond.loops.story_source import NO_TASKS, StorySource
from raymond.system import git

Ask = Callable[[str, tuple[str, ...]], str]
"""Puts a question with these answers to a person; the first answer is the default."""
_SHELL = frozenset("! . : [ [[ cd command eval exec exit export for if set source test time type until while {".split())
"""Words of the shell that are no programs."""
EXAMPLE = "write a section `## Next Steps` with items such as `1. [VERIFY: make test] Add a login page`"

_INIT = "go to your project, or raymond -C DIR ...; in a new one: git init && git add -A && git commit -m 'Start'"

_NOTHING = "has nothing that can be worked on"

_EXAMPLE = "1-core/1.1-parser.md"

_EXAMPLE_OF_STORIES = (
    "`## User Stories`, then `### US-1: Title` with `**Acceptance Criteria:**` and `**Implemented by:** 1.1.1`"
)


def folder_here(docs: str, *, needs_git: bool = True, owned: tuple[str, ...] = documents.RECORDS) -> Folder:
    """The documents in the directory here, which must be in a repository if commits are made."""
    cwd = os.getcwd()
    top = git.top(cwd) or ("" if needs_git else os.path.realpath(cwd))
    if not top:
        raise UsageError("this is not a git repository: a loop commits what it has checked", hint=_INIT)
    found = Folder(cwd, os.path.relpath(docs) if os.path.isabs(docs) else docs, top, owned)
    if os.path.realpath(found.folder) != top and not os.path.realpath(found.folder).startswith(f"{top}/"):
        raise UsageError(f"--docs {docs} is not in this repository", hint="name a folder below the directory here")
    return found


def check_folder(found: Documents, verb: str, loop: str = SESSION) -> None:
    """Refuse a directory without the folder of documents; `verb` is the command that needs it."""
    if os.path.isdir(found.folder):
        return
    if os.path.exists(found.folder):
        raise UsageError(f"{found.docs} is a file, not a folder", hint="rename it, or name another folder: --docs DIR")
    if os.path.isdir(os.path.join(found.top, found.docs)):
        what = f"there is no folder {found.docs} here, but there is one at the top of the repository"
        up = os.path.relpath(found.top, os.path.realpath(found.cwd))
        raise WrongDirectory(what, directory=up, hint=f"raymond {pasted.flag('-C', up, 'DIR')} {loop} {verb}")
    hint = f"mkdir -p {shlex.quote(found.shown(LOGS))}, then {EXAMPLE}"
    if loop in (TASKS, STORIES):
        hint = "`raymond docs plans` shows what belongs there; or name another folder: --docs DIR"
    raise UsageError(f"there is no folder {found.docs} here", hint=hint)


def check_docs(found: Folder, loop: str = SESSION) -> None:
    """Refuse a folder of documents in which no records can be kept."""
    check_folder(found, "start", loop)
    for name in ("", LOGS, SUMMARIES):
        documents.check_inside(found.path(name).rstrip("/"))
    if not os.access(found.folder, os.W_OK):
        raise UsageError(
            f"the folder {found.docs} cannot be written", hint="make it writable: a loop keeps its records there"
        )


def check_size(found: Documents, *names: str) -> None:
    """Refuse a document that is read and written again for every item, if that takes too long."""
    if len(found.beginning(*names)) > documents.LARGEST:
        shown = found.shown(*names)
        hint = "move what is old in it to another file, and commit that"
        raise UsageError(f"{shown} is larger than {documents.LARGEST >> 20} MiB: a loop reads all of it", hint=hint)


def lacks(top: str) -> str:
    """What a directory lacks that a branch needs; empty when it has that."""
    if not git.directories(top)[0]:
        return "this is not a git repository"
    return "" if git.head(top) else "this repository has no commit yet"


def check_repository(top: str) -> None:
    """Refuse a repository in which no commit can be made."""
    if not git.head(top):
        raise UsageError("this repository has no commit yet", hint="git add -A && git commit -m 'Start'")
    settings = dict(git.settings(top))
    has_name = all(
        settings.get(f"user.{one}") or os.environ.get(f"GIT_AUTHOR_{one.upper()}") for one in ("name", "email")
    )
    if not has_name:
        hint = "git config user.name 'Your Name' && git config user.email you@example.com"
        raise UsageError("git does not know who commits", hint=hint)


def check_seen(checkout: Documents, found: Documents, since: str) -> None:
    """Refuse documents that git ignores: they would be on no branch. Another commit has documents of its own."""
    if since and git.reference(checkout.top, since) != git.head(checkout.top):
        return
    newest = checkout.newest()
    if newest and not checkout.exists(LOGS, newest):
        hint = "put a file in its place, or remove it"
        raise UsageError(f"{checkout.shown(LOGS, newest)} is not a regular file", hint=hint)
    names = [PRD, *spec_files.paths(checkout), *([os.path.join(LOGS, newest)] if newest else [])]
    lost = next((one for one in names if checkout.exists(one) and not found.exists(one)), "")
    if lost:
        hint = "take the rule out of .gitignore: a loop keeps its documents on its branch"
        raise UsageError(f"git ignores {checkout.shown(lost)}", hint=hint)


def source(found: Documents, asked: str | None) -> str:
    """The session log that the queue comes from, relative to the folder of logs."""
    if asked:
        path = asked if os.path.exists(asked) else found.path(LOGS, asked)
        name = os.path.relpath(os.path.realpath(path), os.path.realpath(found.path(LOGS)))
        if not found.exists(LOGS, name):
            raise UsageError(
                f"--from-session {asked}: there is no such file", hint=f"ls {shlex.quote(found.shown(LOGS))}"
            )
    else:
        name = newest(found)
    if not found.exists(LOGS, name):
        hint = "put a file in its place, or remove it"
        raise UsageError(f"{os.path.normpath(found.shown(LOGS, name))} is not a regular file", hint=hint)
    check_size(found, LOGS, name)
    return name


def newest(found: Documents) -> str:
    """The name of the newest session log; refused when there is none, or none that is named like one."""
    if name := found.newest():
        return name
    wanted = found.shown(LOGS, f"{datetime.now(UTC).astimezone():%Y%m%d}_0900_session.md")
    others = sorted(one for one in found.logs() if one.endswith(".md"))
    if others:
        what = f"{pasted.name(found.shown(LOGS, others[0]))} does not have the name of a session log"
        raise UsageError(what, hint=f"rename it to {pasted.name(wanted)}")
    raise UsageError(f"there is no session log in {found.shown(LOGS)}", hint=f"in {pasted.name(wanted)}, {EXAMPLE}")


def check_gate(settings: Settings) -> None:
    """Refuse a check of the plain loop that could do harm, or whose program is not here."""
    for gate in settings.gates:
        if why := refused(gate, settings):
            raise UsageError(
                f"--gate: {why}", hint="a check only looks: put what it needs into a script of the project"
            )
        if name := missing(gate):
            raise UsageError(f"--gate needs `{name}`, which is not here", hint="install it, or name another check")


def missing(command: str) -> str:
    """The program of a command, if nobody could find it; a file of the project may be part of the work."""
    from raymond.language import shell_line

    for pipeline in shell_line.read(command):
        if not any(one.words or one.inner for one in pipeline):
            continue  # it only sets variables
        word = pipeline[0].words[0] if pipeline and pipeline[0].words else ""
        if not word or "/" in word or "$" in word or word in _SHELL or shutil.which(word):
            return ""
        return word
    return ""


# What it would work through


class Agenda(Struct, frozen=True):
    """What there is to do."""

    where: str
    """The document or folder that says so, as people are told it."""
    looked: Looked
    docs: str
    """The folder of documents, as people are told it."""
    empty: str = _NOTHING
    """Why nothing could be worked on, if nothing can."""
    settled: str = ""
    """That all which was asked for is done, if it is."""

    @property
    def nothing(self) -> str:
        """Why nothing can be worked on, in words."""
        return self.settled or f"{self.where} {self.empty}"

    @property
    def selection(self) -> Selection:
        """Which of it can be worked on."""
        return self.looked.selection

    def passed_over(self) -> list[tuple[str, str]]:
        """The titles of items that are not taken, and why."""
        return self.selection.not_taken()

    def placed(self, warning: PlanWarning) -> str:
        """A warning with its file and line."""
        name = os.path.join(self.docs, warning.place) if warning.place else os.path.basename(self.where)
        return f"{name}:{warning.line}: {warning.message}"


def prepare(found: Documents, settings: Settings) -> tuple[Settings, Agenda]:
    """Check everything that must hold before a turn; the settings with what they lack, and what there is to do."""
    for name in (PROGRESS, FAILURES, LEARNINGS):
        check_size(found, name)
    if settings.loop == SESSION:
        settings = replace(settings, source=source(found, settings.source or None))
    else:
        check_tasks(found, settings)
    settings, agenda = _agenda(found, settings)
    _check_programs(agenda)
    return settings, agenda


def _agenda(found: Documents, settings: Settings) -> tuple[Settings, Agenda]:
    if settings.loop == SESSION:
        read = queue.read(found.read(LOGS, settings.source))
        links = any(one.verification.kind == "task-loop" for one in read.items)
        settings = replace(settings, links_tasks=links)
        empty = f"has no `## {queue.TITLE}`" if read.section is None else _NOTHING
        where = found.shown(LOGS, settings.source)
        return settings, Agenda(where, source_of(found, settings).look(Ledger()), found.docs, empty)
    source = source_of(found, settings)
    looked = source.look(Ledger())
    settled = "" if looked.selection.ready else source.settled()
    return settings, Agenda(
        found.shown(PRD if settings.loop == STORIES else SPECS), looked, found.docs, settled=settled
    )


def _check_programs(agenda: Agenda) -> None:
    """Refuse a check whose program is not here: it would be red all night."""
    for item in agenda.selection.ready:
        for check in item.commands:
            if name := missing(check.run):
                raise UsageError(
                    f'the check of "{item.title}" needs `{name}`, which is not here',
                    hint="install it, or change the check; --deny leaves items with such a check out",
                )


def plan(settings: Settings, agenda: Agenda, point: StartPoint) -> dict[str, Any]:
    """What a loop would do, for programs."""
    return {
        "loop": settings.loop,
        "queue": agenda.where,
        "most": settings.most or None,
        "items": [
            {"title": one.title, "check": " && ".join(check.run for check in one.commands) or None}
            for one in agenda.selection.ready
        ],
        "passed_over": [{"title": title, "reason": reason} for title, reason in agenda.passed_over()],
        "branch": settings.branch or None,
        "workspace": settings.way,
        "why": settings.why or None,
        "builds_on": point.builds_on or None,
        "taken_along": point.taken,
        "left_out": point.left_out,
        "warnings": [{"line": one.line, "message": one.message, **_place(one)} for one in agenda.looked.warnings],
    }


def _place(warning: PlanWarning) -> dict[str, str]:
    return {"file": warning.place} if warning.place else {}


# Tasks


def check_tasks(found: Documents, settings: Settings) -> None:
    """Refuse a plan that a loop could not work through."""
    for spec in spec_files.paths(found):
        check_size(found, spec)
    known = spec_files.read_tasks(found)
    for id, places in known.twice.items():
        what = f"two tasks have the id {id}: {' and '.join(places)}"
        raise UsageError(what, hint="give one of them another id")
    if settings.loop == STORIES:
        check_stories(found, settings, known)
    else:
        _check_each_task(found, settings, known)


def _check_each_task(found: Documents, settings: Settings, known: Specs) -> None:
    if not known.tasks:
        example = shlex.quote(found.shown(SPECS, _EXAMPLE))
        hint = f"write one as {example}, with headings such as `### 1.1.1. Read numbers`"
        lost = next((f"{found.shown(one.place)}:{one.line}: {one.message}" for one in known.warnings), "")
        raise UsageError(f"there is no task in {found.shown(SPECS)}", hint=lost or hint)
    for flag, name in (
        ("--area", settings.area),
        ("--task-group", settings.task_group),
        ("--task", settings.task),
    ):
        if name and not known.in_group(name):
            ids = dict.fromkeys(_shortened(id, flag) for id in known.tasks)
            what = {"--area": "area", "--task-group": "group"}.get(flag, "task")
            raise UsageError(f"{flag} {name}: there is no such {what}", hint=f"there is {starting.few(list(ids))}")


def _shortened(id: str, flag: str) -> str:
    return {"--area": task_spec.area, "--task-group": task_spec.group}.get(flag, str)(id)


# Stories


def check_stories(found: Documents, settings: Settings, known: Specs) -> None:
    """Refuse a PRD that a loop could not work through."""
    check_size(found, PRD)
    text = found.read(PRD)
    read = prd.read(text)
    if not text:
        hint = f"write it: {_EXAMPLE_OF_STORIES}; or raymond prd import FILE makes one of another format"
        raise UsageError(f"there is no {found.shown(PRD)}", hint=hint)
    if not read.stories:
        hint = next((f"line {one.line}: {one.message}" for one in read.warnings), f"write {_EXAMPLE_OF_STORIES}")
        raise UsageError(f"{found.shown(PRD)} has no stories", hint=hint)
    _check_ids(found, settings, read)
    _check_status(found)
    _check_tasks_of_stories(found, settings, known, read.stories)


def _check_ids(found: Documents, settings: Settings, read: Prd) -> None:
    shown, ids = found.shown(PRD), [one.id for one in read.stories]
    for id, first, other in read.twice:
        what = f"two stories have the id {id}: {shown}:{first} and {shown}:{other}"
        raise UsageError(what, hint="give one of them another id")
    if settings.story and settings.story not in ids:
        raise UsageError(f"--story {settings.story}: there is no such story", hint=f"{shown} has {starting.few(ids)}")


def _check_status(found: Documents) -> None:
    check_size(found, PRD_STATUS)
    text = found.read(PRD_STATUS)
    if not text:
        hint = "raymond prd status-init builds it, and shows which tasks it links to which stories"
        raise UsageError(f"there is no {found.shown(PRD_STATUS)}", hint=hint)
    try:
        prd_status.read(text)
    except Broken as error:
        hint = "repair it, or raymond prd status-init keeps it aside and builds another one"
        raise UsageError(f"{found.shown(PRD_STATUS)}: {error}", hint=hint) from None


def _check_tasks_of_stories(found: Documents, settings: Settings, known: Specs, stories: tuple[Story, ...]) -> None:
    """Refuse stories that the loop would come to and that nothing says how to implement."""
    source = StorySource(found, settings)
    for linked in source.failing(known, stories, source.status())[: settings.most or None]:
        tasks, missing = task_source.tasks_of(linked.names, known)
        if not tasks and not settings.create_tasks and not linked.story.problem:
            where = f"{found.shown(PRD)}:{linked.story.line}: {linked.story.id}"
            if missing:
                raise UsageError(f"{where}: there is no task {missing[0]}", hint=_near(missing[0], known))
            what, _, hint = NO_TASKS.format(id=linked.story.id).partition(": ")
            raise UsageError(f"{where}: {what}", hint=_alike(linked.story, stories, known) or hint)


def _near(name: str, known: Specs) -> str:
    """The tasks of which one may be meant."""
    near = known.in_group(task_spec.group(name)) or known.in_group(task_spec.area(name)) or known.tasks.values()
    ids = [one.task.id for one in near]
    return f"there is {starting.few(ids)}: correct its **Implemented by:**" if ids else "write it, or name another one"


def _alike(story: Story, stories: tuple[Story, ...], known: Specs) -> str:
    """How a story gets the tasks that have words in common with it; empty when there are none."""
    found = links.find(stories, [one.task for one in known.tasks.values()]).of(story.id)
    if not found:
        return ""
    names = ", ".join(found[:3])
    return f"raymond prd status-init --yes links it to {names}, or write **Implemented by:** {names} under it"
