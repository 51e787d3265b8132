"""What must hold before a loop over tasks or stories begins: the plan can be read, and names what it is asked for."""

import os
import shlex

from raymond.errors import UsageError
from raymond.loops import opening, spec_files, specs
from raymond.loops.documents import PRD, PRD_STATUS, SPECS
from raymond.loops.formats import task_spec
from raymond.loops.opening import Place
from raymond.loops.settings import STORIES, Settings
from raymond.loops.specs import Specs

_EXAMPLE = "1-core/1.1-parser.md"


def check(place: Place, settings: Settings) -> None:
    """Refuse a plan that a loop could not work through."""
    _check_seen(place)
    for spec in spec_files.paths(place.documents):
        opening.check_size(place.documents, spec)
    known = specs.read(place.documents)
    for id, places in known.twice.items():
        what = f"two tasks have the id {id}: {' and '.join(places)}"
        raise UsageError(what, hint="give one of them another id")
    if settings.loop == STORIES:
        from raymond.loops import story_planning

        story_planning.check(place, settings, known)
    else:
        _check_tasks(place, settings, known)


def _check_seen(place: Place) -> None:
    """Refuse plans that git does not see: nobody could tell who has changed them."""
    for name in (os.path.join(SPECS, _EXAMPLE), PRD, PRD_STATUS):
        where, rule = place.repository.rule_of(os.path.join(place.documents.inside, name))
        if where:
            hint = "let git see it: it is compared with what it was when an item began"
            raise UsageError(f"git ignores {place.documents.shown(name)} (`{rule}` in {where})", hint=hint)


def _check_tasks(place: Place, settings: Settings, known: Specs) -> None:
    found = place.documents
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
