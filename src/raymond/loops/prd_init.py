"""Builds docs/prd-status.json from the PRD and the implementation specs."""

import fcntl
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins

from raymond.errors import UsageError
from raymond.faces.table import Column, lines
from raymond.faces.words import many
from raymond.loops import spec_files
from raymond.loops.documents import PRD, PRD_STATUS, SPECS, Documents
from raymond.loops.formats import links, prd, prd_status
from raymond.loops.formats.links import Links
from raymond.loops.formats.prd import Prd
from raymond.loops.formats.prd_status import Status
from raymond.loops.formats.state_file import Broken
from raymond.store import project as projects
from raymond.system.files import make_private, private

NO_PRD = "write your stories there, or: raymond prd import FILE"
"""The way out where there is no PRD."""
_SHOWN = 5
"""Names in a list that are told."""
_COLUMNS = (
    Column(title="STORY"),
    Column(title="TITLE", least=10, prose=True),
    Column(title="CHECK"),
    Column(title="LINKS"),
    Column(title="TASKS", least=10, prose=True),
)


class Survey(Struct, frozen=True):
    """What a PRD and its specs have, and what is known of it so far."""

    documents: Documents
    prd: Prd
    links: Links
    warnings: tuple[str, ...]
    """Each with its file and line."""
    before: Status | None
    """The status file; None when there is none that can be read."""
    broken: str = ""
    """Why it cannot."""

    @property
    def has_medium(self) -> bool:
        """Whether some links rest on words only."""
        return any(one.confidence == "medium" for one in self.links.links)


@contextmanager
def alone(found: Documents) -> Iterator[None]:
    """Nobody else adds stories or builds the status meanwhile: two at once would lose what one of them wrote."""
    root = projects.at(found.top).root
    make_private(root)
    fd = private(os.path.join(root, "prd.lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def look(found: Documents) -> Survey:
    """Read everything; nothing is changed."""
    check_folders(found)
    if not found.exists(PRD):
        what = "is not a file" if PRD in found.names() else "does not exist"
        raise UsageError(f"{found.shown(PRD)} {what}", hint=NO_PRD)
    read = prd.read(found.read(PRD))
    if not read.stories:
        hint = "a story begins with a heading such as `### US-1: Log in` under `## User Stories`"
        hint = next((f"line {one.line}: {one.message}" for one in read.warnings), hint)
        raise UsageError(f"{found.shown(PRD)} has no stories", hint=hint)
    specs = spec_files.read_files(found)
    tasks = {task.id: task for spec in reversed(specs) for task in reversed(spec.tasks)}
    warnings = [f"{found.shown(PRD)}:{one.line}: {one.message}" for one in read.warnings]
    for spec in specs:
        warnings += [f"{found.shown(spec.shown)}:{one.line}: {one.message}" for one in spec.warnings]
    warnings += [f"{found.shown(one.place)}:{one.line}: {one.message}" for one in spec_files.strays(found)]
    known, broken = before(found)
    return Survey(found, read, links.find(read.stories, [*reversed(tasks.values())]), tuple(warnings), known, broken)


def check_folders(found: Documents) -> None:
    """Refuse folders of documents that are something else, or lead elsewhere."""
    is_wrong = {
        found.docs: os.path.lexists(found.folder) and not found.is_folder(),
        found.shown(SPECS): SPECS in found.names() and not found.is_folder(SPECS),
    }
    for shown in (one for one, wrong in is_wrong.items() if wrong):
        raise UsageError(f"{shown} is not a folder", hint="rename it, or name another folder: --docs DIR")


def check_top(found: Documents, name: str, again: str) -> None:
    """Refuse a folder without a document that the top of its repository has; `again` is the command for there."""
    if is_at_top(found, name):
        shown = found.shown(name) if name else f"folder {found.docs}"
        what = f"there is no {shown} here, but there is one at the top of the repository"
        hint = f"{again}; or mkdir {shlex.quote(found.docs)}, if this folder is to have its own" if not name else again
        raise UsageError(what, hint=hint)


def is_at_top(found: Documents, name: str) -> bool:
    """Whether a document is not here, but at the top of the repository."""
    there = os.path.join(found.top, found.docs, name)
    return not os.path.lexists(found.path(name).rstrip("/")) and os.path.exists(there)


def before(found: Documents) -> tuple[Status | None, str]:
    """The status file, and why it cannot be read; None when there is none that can."""
    if PRD_STATUS not in found.names():
        return None, ""
    if not found.exists(PRD_STATUS):
        return None, "it is not a file"
    try:
        return prd_status.read(found.beginning(PRD_STATUS).encode("utf-8", "surrogateescape")), ""
    except Broken as error:
        return None, str(error)


def status_of(survey: Survey, now: datetime, *, medium: bool) -> Status:
    """The status as it would be written; `medium` says whether links that rest on words count."""
    before = survey.before or prd_status.empty(survey.documents.shown(PRD))
    date = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    return prd_status.merged(before, survey.prd.stories, _taken(survey, before, medium), date)


def _taken(survey: Survey, before: Status, medium: bool) -> dict[str, list[str]]:
    """The tasks of each story: those that are named, else those that were taken before and those that are taken now."""
    kept = {one["id"]: one.get("implementedBy") or [] for one in before["stories"]}
    found = survey.links.by_story()
    taken = {}
    for story in survey.prd.stories:
        own = found.get(story.id, [])
        if story.implemented_by or any(one.confidence == "high" for one in own):
            # What the story names and does not exist stays: whoever works on it is told.
            named = (*story.implemented_by, *(one.task for one in own if one.why == links.BY_TASK))
            taken[story.id] = [*dict.fromkeys(named)]
        else:
            words = [one.task for one in own] if medium else []
            taken[story.id] = [*dict.fromkeys((*kept.get(story.id, []), *words))]
    return taken


def write(survey: Survey, status: Status) -> str:
    """Write the status; the name under which a broken one was put aside, if there was one."""
    path = survey.documents.path(PRD_STATUS)
    aside = ""
    if survey.broken:
        aside = f"{path}.broken"
        number = 1
        while os.path.lexists(aside):
            number += 1
            aside = f"{path}.broken_{number}"
        os.replace(path, aside)
    survey.documents.write(prd_status.write(status), PRD_STATUS)
    return survey.documents.shown(os.path.basename(aside)) if aside else ""


# Words


def table(survey: Survey, width: int = 0) -> list[str]:
    """The stories with the links that are proposed."""
    found = survey.links.by_story()
    rows = []
    for story in survey.prd.stories:
        own = found.get(story.id, [])
        sure = own[0].confidence if own else "none"
        kind = "problem" if story.problem else story.check(has_tasks=bool(own)).kind
        rows.append((story.id, story.title, kind, sure, ", ".join(one.task for one in own) or "-"))
    return lines(_COLUMNS, rows, width)


def reports(survey: Survey) -> Iterator[str]:
    """What a person should know before the status is written."""
    yield from (f"warning: {one}" for one in survey.warnings)
    for one in survey.links.links:
        if one.confidence == "medium":
            yield f"medium: {one.task} may belong to {one.story}: {one.why}"
    for dangling in survey.links.dangling:
        yield f"broken link: {dangling.where} names {_kind(dangling.names)} {dangling.names}, which does not exist"
    if survey.links.orphans:
        yield f"belong to no story: {many(len(survey.links.orphans), 'task')} ({_few(survey.links.orphans)})"
    if survey.links.bare:
        yield f"without tasks: {many(len(survey.links.bare), 'story')} ({_few(survey.links.bare)})"
    if survey.broken:
        yield f"{survey.documents.shown(PRD_STATUS)} is broken and is kept aside: {survey.broken}"


def _kind(name: str) -> str:
    """What a name stands for: a task has a number."""
    return "task" if name[:1].isdecimal() else "story"


def _few(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def told(survey: Survey, status: Status) -> str:
    """What was written, in words."""
    numbers = status["statistics"]
    states = ", ".join(f"{numbers[name]} {name}" for name in ("passed", "failed", "pending"))
    return f"wrote {survey.documents.shown(PRD_STATUS)}: {many(numbers['total'], 'story')} ({states})"


def document(survey: Survey, status: Status, *, medium: bool) -> dict[str, Any]:
    """All of it for programs."""
    found = survey.links.by_story()
    written = {one["id"]: one for one in status["stories"]}
    return {
        "file": survey.documents.shown(PRD_STATUS),
        "stories": [
            {
                "id": story.id,
                "title": story.title,
                "verification": written[story.id]["verification"]["type"],
                "problem": story.problem or None,
                "confidence": found[story.id][0].confidence if story.id in found else "none",
                "tasks": [to_builtins(one) for one in found.get(story.id, [])],
            }
            for story in survey.prd.stories
        ],
        "medium": medium,
        "orphans": [*survey.links.orphans],
        "without_tasks": [*survey.links.bare],
        "dangling": [to_builtins(one) for one in survey.links.dangling],
        "warnings": [*survey.warnings],
        "broken": survey.broken or None,
        "statistics": status["statistics"],
    }
