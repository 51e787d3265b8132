"""Agenda: what a loop that begins would work through, and what must hold for it."""

import os
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.errors import UsageError
from raymond.loops import documents, opening
from raymond.loops.documents import LOGS, PRD, SPECS
from raymond.loops.formats import queue
from raymond.loops.formats.item import Doubt
from raymond.loops.ledger import Ledger
from raymond.loops.opening import Place
from raymond.loops.selection import Selection
from raymond.loops.settings import SESSION, STORIES, Settings
from raymond.loops.source import Looked
from raymond.loops.sources import source_of

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


def prepare(place: Place, settings: Settings) -> tuple[Settings, Agenda]:
    """Check everything that must hold before a turn; the settings with what they lack, and what there is to do."""
    opening.check_docs(place.documents, settings.loop)
    opening.check_repository(place.repository, settings.branch)
    if settings.loop == SESSION:
        opening.check_queue(place)
        settings = replace(settings, source=opening.source(place.documents, settings.source or None))
    else:
        _check_plans(place, settings)
    settings, agenda = _agenda(place, settings)
    _check_programs(agenda)
    return settings, agenda


def _check_plans(place: Place, settings: Settings) -> None:
    from raymond.loops import planning

    planning.check(place, settings)


def _agenda(place: Place, settings: Settings) -> tuple[Settings, Agenda]:
    found = place.documents
    if settings.loop == SESSION:
        read = queue.read(documents.read(found.path(LOGS, settings.source)))
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


def plan(place: Place, settings: Settings, agenda: Agenda) -> dict[str, Any]:
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
        "branch": opening.branch_of(place, settings) or None,
        "dirty": None if place.repository.filters() else opening.dirt_of(place),  # those would run
        "doubts": [{"line": one.line, "message": one.message, **_place(one)} for one in agenda.looked.doubts],
    }


def _place(doubt: Doubt) -> dict[str, str]:
    return {"file": doubt.place} if doubt.place else {}
