"""What must hold before a loop over tasks or stories begins: the plan can be read, and names what it is asked for."""

import shlex

from raymond.errors import UsageError
from raymond.loops import opening, spec_files, specs
from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import task_spec
from raymond.loops.settings import STORIES, Settings
from raymond.loops.specs import Specs

_EXAMPLE = "1-core/1.1-parser.md"


def check(found: Documents, settings: Settings) -> None:
    """Refuse a plan that a loop could not work through."""
    for spec in spec_files.paths(found):
        opening.check_size(found, spec)
    known = specs.read(found)
    for id, places in known.twice.items():
        what = f"two tasks have the id {id}: {' and '.join(places)}"
        raise UsageError(what, hint="give one of them another id")
    if settings.loop == STORIES:
        from raymond.loops import story_planning

        story_planning.check(found, settings, known)
    else:
        _check_tasks(found, settings, known)


def _check_tasks(found: Documents, settings: Settings, known: Specs) -> None:
    if not known.tasks:
        example = shlex.quote(found.shown(SPECS, _EXAMPLE))
        hint = f"write one as {example}, with headings such as `### 1.1.1. Read numbers`"
        lost = next((f"{found.shown(one.place)}:{one.line}: {one.message}" for one in known.doubts), "")
        raise UsageError(f"there is no task in {found.shown(SPECS)}", hint=lost or hint)
    for flag, name in (
        ("--area", settings.area),
        ("--task-group", settings.task_group),
        ("--task", settings.task),
    ):
        if name and not known.in_group(name):
            ids = dict.fromkeys(_shortened(id, flag) for id in known.tasks)
            what = {"--area": "area", "--task-group": "group"}.get(flag, "task")
            raise UsageError(f"{flag} {name}: there is no such {what}", hint=f"there is {opening.few(list(ids))}")


def _shortened(id: str, flag: str) -> str:
    return {"--area": task_spec.area, "--task-group": task_spec.group}.get(flag, str)(id)
