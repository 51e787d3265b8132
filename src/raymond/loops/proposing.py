"""Tasks that an agent proposes for a story: read from its message, written into a spec of their own."""

import os
from typing import Any

from raymond.language.check import Check, expected
from raymond.loops import finishing, markers, spec_files
from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import foreign_text, session_log, task_spec
from raymond.loops.formats.task import Task
from raymond.loops.inspection import Inspection
from raymond.loops.ledger import PLANNED
from raymond.loops.work import Work
from raymond.patterns import regex

NONE = "the agent named no task of the form that it was asked for"
_MOST = 50
"""Tasks of a story; whoever names more has not understood what one is."""
_FIELD = regex(r"(?im)^\s*(?:[-*]\s*)?\**(status|verified|proposed|implements|last attempt|verification)\**:?\**.*$")
_GAP = regex(r"\n{3,}")
_LEVEL = 5
"""Headings of this level are not read as tasks."""
_FOLDER = "-stories"
"""How the folder of the area ends that these tasks are in."""
_LISTED = regex(r"(?im)^\s*-\s*(command|expected|timeout|retries|type|criteria|seal)\s*:.*$")


def read(reply: str) -> list[Task]:
    """The tasks in the message of an agent."""
    return [one for one in task_spec.read(markers.without(reply)).tasks if one.title][:_MOST]


def plan(work: Work, found: Inspection, tasks: list[Task], reply: str) -> dict[str, Any] | str:
    """Write the spec and the records, and say what the commit will be, or why there is none."""
    if found.changed or found.commits:  # it was asked to change nothing
        name, _ = work.save(found, 1)
        work.go_back(found)
        found.notes.append(f"changed files while it planned; they were put back, and are kept in {name}")
    place = _place(work.step.documents, work.group)
    number = os.path.basename(place).partition("-")[0]
    sections = [_section(f"{number}.{at}", work.group, one) for at, one in enumerate(tasks, 1)]
    title = foreign_text.inline(f"{number} Tasks of {work.title.removesuffix(' (plan its tasks)')}")
    work.write_document(f"# {title}\n\n" + "\n".join(sections), place)
    ids = ", ".join(f"{number}.{at}" for at in range(1, len(tasks) + 1))
    shown = work.step.documents.shown(place)
    told = session_log.told(markers.without(reply))
    told["Next Steps"] = ""
    ended = f"Planned: {ids} in {shown}, proposed."
    work.write_log({"Summary": told.get("Summary", "")[:2000]}, [one.raw for one in work.queue_before()], found, ended)
    work.write_progress(f"**{work.title}**\n\nProposed {ids} in {shown}.", "skipped (a plan)")
    entry = work.entry(PLANNED, found)
    given = finishing.committed(work, found, {}, entry, f"docs: propose tasks ({work.group})")
    return given if isinstance(given, dict) else "a hook of the project rejects the commit"


def _place(found: Documents, story: str) -> str:
    """The spec for the tasks of a story: the one that was made for it before, or the next group of a free area."""
    name = f"{story.lower()}.md"
    known = spec_files.read(found)
    for one in known:
        if one.folder.endswith(_FOLDER) and one.name.endswith(f"-{name}"):
            return one.shown
    areas = spec_files.areas(found)
    folder = next((one for one in areas if one.endswith(_FOLDER)), "")
    area = areas[folder] if folder else max([0, *areas.values()]) + 1
    group = max([0, *(one.group for one in known if one.area == area)]) + 1
    return os.path.join(SPECS, folder or f"{area}{_FOLDER}", f"{area}.{group}-{name}")


def _section(id: str, story: str, task: Task) -> str:
    """A task as Raymond writes it: whatever the agent wrote, these are its fields."""
    lines = [f"## {id}. {foreign_text.inline(task.title)}", "", "**Status:** 🔵 Planned", "**Proposed:** yes"]
    lines += [f"**Implements:** {story}", *_verification(task), "", _prose(task)]
    return "\n".join(lines).rstrip() + "\n"


def _verification(task: Task) -> list[str]:
    if task.check is None or task.problem:
        return ["**Verification:**", "- type: manual", f"- criteria: {foreign_text.inline(task.title)}"]
    lines = ["**Verification:**", f"- command: {foreign_text.code(task.check.run)}"]
    return lines if task.check == Check(run=task.check.run) else [*lines, f"- expected: {expected(task.check)}"]


def _prose(task: Task) -> str:
    body = _LISTED.sub("", _FIELD.sub("", task.body))
    return _GAP.sub("\n\n", foreign_text.prose(body, _LEVEL)).strip()
