"""Agenda: what a loop that begins would work through, and what must hold for it."""

import os
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.errors import UsageError
from raymond.loops import opening
from raymond.loops.documents import FAILURES, LEARNINGS, LOGS, PRD, PROGRESS, SPECS, Documents
from raymond.loops.formats import queue
from raymond.loops.formats.queue_item import Doubt
from raymond.loops.ledger import Ledger
from raymond.loops.selection import Selection
from raymond.loops.settings import SESSION, STORIES, Settings
from raymond.loops.source import Looked
from raymond.loops.sources import source_of
from raymond.loops.start_point import StartPoint

_NOTHING = "has nothing that can be worked on"


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

    def passed(self) -> list[tuple[str, str]]:
        """The titles of items that are not taken, and why."""
        return self.selection.not_taken()

    def placed(self, doubt: Doubt) -> str:
        """A doubt with its file and line."""
        name = os.path.join(self.docs, doubt.place) if doubt.place else os.path.basename(self.where)
        return f"{name}:{doubt.line}: {doubt.message}"


def prepare(found: Documents, settings: Settings) -> tuple[Settings, Agenda]:
    """Check everything that must hold before a turn; the settings with what they lack, and what there is to do."""
    for name in (PROGRESS, FAILURES, LEARNINGS):
        opening.check_size(found, name)
    if settings.loop == SESSION:
        settings = replace(settings, source=opening.source(found, settings.source or None))
    else:
        from raymond.loops import planning

        planning.check(found, settings)
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
            if name := opening.missing(check.run):
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
        "passed_over": [{"title": title, "reason": reason} for title, reason in agenda.passed()],
        "branch": settings.branch or None,
        "workspace": settings.way,
        "why": settings.why or None,
        "builds_on": point.builds_on or None,
        "taken_along": point.taken,
        "left_out": point.left_out,
        "doubts": [{"line": one.line, "message": one.message, **_place(one)} for one in agenda.looked.doubts],
    }


def _place(doubt: Doubt) -> dict[str, str]:
    return {"file": doubt.place} if doubt.place else {}
