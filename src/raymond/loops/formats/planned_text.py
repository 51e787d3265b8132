"""Tasks that an agent planned, as a spec has them: proposed, with their checks, and with its words as a quotation."""

from collections.abc import Sequence

from raymond import durations
from raymond.language.check import Check, expected
from raymond.loops.formats import foreign_text, imported_text, task_spec
from raymond.loops.formats.task import Task
from raymond.loops.formats.task_check import KEYS
from raymond.loops.formats.task_layout import Layout
from raymond.patterns import regex
from raymond.text import visible

_OURS = ("status", "verified", "proposed", "implements")
"""Fields that are not the agent's to fill in."""
_LINE = regex(r"[^\n]*\n|[^\n]+")
_KEY = regex(rf"(?i)\s*[-*+]\s+[*_`]*(?:{'|'.join(KEYS)})[*_`]*\s*:")
_HEADING = "## 1.1.1. -\n"


def compose(number: str, title: str, story: str, tasks: Sequence[Task]) -> str:
    """The spec of the tasks of a story."""
    sections = [_section(f"{number}.{at}", story, one) for at, one in enumerate(tasks, 1)]
    return f"# {foreign_text.inline(f'{number} {title}')}\n\n" + "\n".join(sections)


def is_faithful(text: str, number: str, story: str, tasks: Sequence[Task]) -> bool:
    """Whether a spec says exactly this: these tasks, proposed, with these checks."""
    there = task_spec.read(text).tasks
    if [one.id for one in there] != [f"{number}.{at}" for at in range(1, len(tasks) + 1)]:
        return False
    return all(_is_planned(one, planned, story) for one, planned in zip(there, tasks, strict=True))


def _is_planned(one: Task, planned: Task, story: str) -> bool:
    is_new = one.proposed and one.status == "planned" and not one.verified and one.implements == (story,)
    check = None if planned.problem else planned.check
    if check is None:
        return is_new and one.is_manual and one.check is None and not one.problem
    is_shown = visible(check.run) == check.run and visible(expected(check)) == expected(check)
    return is_new and is_shown and (one.check, one.retries, one.seal) == (check, planned.retries, planned.seal)


def _section(id: str, story: str, task: Task) -> str:
    """A task as Raymond writes it: whatever the agent wrote, these are its fields."""
    title = imported_text.criterion(task.title).rstrip("# ")
    lines = [f"## {id}. {title or 'Untitled'}", "", f"**Status:** {task_spec.SHOWN['planned']}", "**Proposed:** yes"]
    lines += [f"**Implements:** {story}", "**Verification:**", *_verification(task), ""]
    return "\n".join([*lines, *imported_text.quoted(_prose(task))]).rstrip() + "\n"


def _verification(task: Task) -> list[str]:
    check = task.check
    if check is None or task.problem:
        criteria = (task.is_manual and task.criteria) or (task.title,)
        return ["- type: manual", "- criteria:", *(f"  - {imported_text.criterion(one)}" for one in criteria)]
    lines = [f"- command: {imported_text.code(check.run)}"]
    if check != Check(run=check.run, timeout=check.timeout):
        lines.append(f"- expected: {imported_text.code(expected(check))}")
    if check.timeout:
        lines.append(f"- timeout: {durations.written(check.timeout)}")
    if task.retries is not None:
        lines.append(f"- retries: {task.retries}")
    return [*lines, f"- seal: {', '.join(map(imported_text.code, task.seal))}"] if task.seal else lines


def _prose(task: Task) -> str:
    """What the agent says about a task, without the fields that Raymond writes itself."""
    layout = Layout(_HEADING + task.body)
    place = layout.places[0]
    fields = list(layout.fields(place))
    kept, at = [], place.body
    for field, following in zip(fields, [*fields[1:], None], strict=False):
        if field.name in _OURS:
            kept.append(layout.text[at : field.start])
            at = field.next
        elif field.name == "verification" and not task.problem:
            stop = layout.stop(field, layout.limit(field, following, place))
            lines = [] if task.is_manual else _LINE.findall(layout.text[field.next : stop])
            kept += [layout.text[at : field.start], *(line for line in lines if not _KEY.match(line))]
            at = stop
    return "".join([*kept, layout.text[at : place.end]])
