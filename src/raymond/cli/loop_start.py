"""Start a loop over items, whichever says what they are: sessions, tasks or stories."""

import json
import os
import sys
from typing import Any

from msgspec.structs import replace

from raymond.cli import background, choice, flags, foreground, loop_flags, loop_questions, loop_verbs, prompt
from raymond.cli import run as runs_of
from raymond.cli.flags import StartFlags
from raymond.control import runs
from raymond.control.start import Choices
from raymond.errors import UsageError
from raymond.faces import words
from raymond.faces.foreign_text import said
from raymond.loops import agenda as agendas
from raymond.loops import documents, opening, starting
from raymond.loops.agenda import Agenda
from raymond.loops.documents import LOGS
from raymond.loops.opening import Place
from raymond.loops.settings import SESSION, Settings
from raymond.loops.starting import Found


class Start:
    """One start of a loop, as it was typed."""

    def __init__(self, loop: str, given: StartFlags, own: dict[str, Any], most: str, opens: str) -> None:
        self.loop = loop
        self.given = given
        self.own = own
        self.most = most
        """The flag that limits the items."""
        self.opens = opens
        """How a person gets at what the loop works through."""
        self.checkout = ""

    def __call__(self, more: dict[str, Any]) -> int:
        """Start the loop, or resume the one that was cut off here; `more` are settings that only this loop has."""
        self.given, options, _ = runs_of.choose(self.given)
        foreground.check(self.given.show, dry=self.given.dry_run)
        options.id = starting.new_id(self.loop, self.given.id_)
        starting.check_new(options.id)
        place = self._place(options.id)
        found = starting.look(runs.here(), place.documents, self.loop)
        starting.check_open(runs.here(), starting.own(found))
        if (code := self._take_up(place, found)) is not None:
            return code
        asks = prompt.can_ask() and not self.given.show.detach
        settings = loop_flags.settings(self.loop, self.own, checkout=self.checkout, strict=options.strict, asks=asks)
        settings = replace(settings, **more)
        if not self.given.dry_run and self.loop == SESSION:
            _recover_log(place)
        settings, agenda = agendas.prepare(place, settings)
        _warn(agenda, self.opens if options.strict else "")
        if self.given.dry_run and self.given.show.as_json:
            print(json.dumps(agendas.plan(place, settings, agenda)))
            return 0
        if not agenda.selection.ready:
            return self._nothing(agenda)
        if self.given.dry_run:
            return self._show(place, settings, agenda)
        return self._begin(place, settings, agenda, options, found)

    def _place(self, id: str) -> Place:
        """Where it works: refused where another loop is at work."""
        has_plans = self.loop != SESSION
        place = starting.place_here(self.own["docs"], has_plans=has_plans)
        if self.own["worktree"] and not self.given.dry_run:
            self.checkout = place.repository.top
            place = loop_verbs.move_to_worktree(place, id, self.own["docs"], has_plans=has_plans)
        starting.check_alone(runs.here())
        if not self.given.dry_run:
            place.repository.check_excludable()
        return place

    def _take_up(self, place: Place, found: Found | None) -> int | None:
        """Conclude or resume what was found; None when a new loop is to begin."""
        if found is None or self.given.dry_run:
            return None
        if found.is_unconcluded:
            loop_verbs.conclude(found, self.given.show)
        if found.status in ("complete", "failed"):
            return None
        return loop_verbs.take_up(place, found, self.loop, flags.as_resumption(self.given), yes=self.own["yes"])

    def _begin(self, place: Place, settings: Settings, agenda: Agenda, options: Choices, found: Found | None) -> int:
        opening.branch_for(place, options.id, settings)  # refused before anything is committed or put away
        checks = [check.run for item in agenda.selection.ready for check in item.commands]
        loaded = starting.load(self.own["workflow"] or starting.WORKFLOW, options, checks, self.loop)
        settings = _settled(place, options.id, settings, self.own["on_dirty"])
        if found:
            starting.archive(place.documents, self.loop)
        handle = starting.begin(loaded, options, settings)
        most = f", at most {settings.most}" if settings.most else ""
        count = words.many(len(agenda.selection.ready), "item")
        loop_verbs.tell(f"{handle.id}: {count} in {agenda.where}{most}")
        loop_verbs.introduce(handle)
        choice.warn_of_reach(handle)
        choice.warn_of_company(handle)
        return (background.start if self.given.show.detach else foreground.drive)(handle, self.given.show)

    def _nothing(self, agenda: Agenda) -> int:
        print(f"nothing to do: {agenda.nothing}")
        blocked = [] if self.loop == SESSION else agenda.selection.blocked
        for number, (title, why) in enumerate(agenda.passed()):
            print(said(f"  {title}: {'blocked: ' if number < len(blocked) else ''}{why}", sys.stdout))
        if blocked:
            where = os.path.join(agenda.docs, blocked[0].item.place)
            loop_verbs.tell(f"hint: to unblock a task, set its **Status:** to 🔵 Planned: {where}")
        elif not agenda.settled:
            loop_verbs.tell(f"hint: {self.opens}")
        return 0

    def _show(self, place: Place, settings: Settings, agenda: Agenda) -> int:
        """What would be done."""
        most = settings.most or len(agenda.selection.ready)
        print(f"queue:  {agenda.where}")
        for number, item in enumerate(agenda.selection.ready, 1):
            check = " && ".join(one.run for one in item.commands) or ("a person" if item.criteria else "no check")
            later = "" if number <= most or item.group else f" (not in this run: {self.most})"
            print(said(f"  {number}. {item.title}: {check}{later}", sys.stdout))
        for title, why in agenda.passed():
            print(said(f"  -  {title}: {why}", sys.stdout))
        print(f"branch: {opening.branch_of(place, settings) or 'a new branch raymond/ID'}")
        if filters := place.repository.filters():
            print(said(f"dirty:  not looked at: {filters[0]} of this repository would run", sys.stdout))
        elif dirt := opening.dirt_of(place):
            print(said(f"dirty:  {opening.few(dirt)}: start asks what to do, or needs --on-dirty", sys.stdout))
        print("nothing was started")
        return 0


def _warn(agenda: Agenda, opens: str = "") -> None:
    """Say what may not mean what its author thinks; with `opens`, how a person gets at it, refuse it."""
    for doubt in agenda.looked.doubts:
        told = agenda.placed(doubt)
        if opens:
            raise UsageError(told, hint=f"{opens}; without --strict, this only warns")
        loop_verbs.tell(f"warning: {told}")


def _recover_log(place: Place) -> None:
    name, text = starting.lost_log(place, runs.here())
    if name:
        documents.write(place.documents.path(LOGS, name), text)
        loop_verbs.tell(f"{place.documents.shown(LOGS, name)} was gone: written anew from its commit")


def _settled(place: Place, id: str, settings: Settings, on_dirty: str) -> Settings:
    """The settings with the branch that is checked out now, and whether the tree has changes that stay there."""
    told, rest = opening.settle(place, id, on_dirty, loop_questions.asker())
    if told:
        loop_verbs.tell(told)
    before = place.repository.branch()
    settings = opening.branch_out(place, id, replace(settings, is_dirty=rest == "continue"))
    if settings.branch != before:
        loop_verbs.tell(f"working on the branch {settings.branch}; {before or 'HEAD'} stays as it is")
    if rest == "commit":
        loop_verbs.tell(opening.commit_rest(place))
    return settings
