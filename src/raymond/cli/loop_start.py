"""Start a loop over items, whichever says what they are: sessions, tasks or stories."""

import json
import os
import sys
from typing import Any

from msgspec.structs import replace

from raymond.cli import background, choice, dry_run, flags, foreground, loop_flags, loop_verbs, prompt
from raymond.cli import run as runs_of
from raymond.cli.flags import StartFlags
from raymond.cli.loop_flags import MOST
from raymond.control import preview, runs
from raymond.control import start as starts
from raymond.control.handle import RunHandle
from raymond.control.start import Choices
from raymond.errors import UsageError
from raymond.faces import words
from raymond.faces.foreign_text import said
from raymond.language.ways import Way, narrowed
from raymond.loops import finding, preflight, starting
from raymond.loops import preflight as agendas
from raymond.loops.documents import PLANS, RECORDS, Folder
from raymond.loops.finding import Found
from raymond.loops.preflight import Agenda
from raymond.loops.settings import SESSION, Settings
from raymond.loops.starting import Draft


class Start:
    """One start of a loop, as it was typed."""

    def __init__(self, loop: str, given: StartFlags, own: dict[str, Any], opens: str) -> None:
        self.loop = loop
        self.given = given
        self.own = own
        self.opens = opens
        """How a person gets at what the loop works through."""

    def __call__(self) -> int:
        """Start the loop, or resume the one that was cut off here."""
        begun = self.begin()
        if isinstance(begun, int):
            return begun
        return (background.start if self.given.show.detach else foreground.drive)(begun, self.given.show)

    def begin(self, **more: Any) -> RunHandle | int:
        """The run of a loop that has begun, with `more` settings that no flag says; the exit code if none has."""
        self.given, options, configuration = runs_of.choose(self.given)
        foreground.check(self.given.show, dry=self.given.dry_run)
        options.id = starting.new_id(self.loop, self.given.run["id"], dry=self.given.dry_run)
        starting.check_new(options.id)
        checkout = preflight.folder_here(self.own["docs"], owned=(*RECORDS, *PLANS))
        found = finding.look(runs.here(), checkout, self.loop)
        if (code := self._take_up(found)) is not None:
            return code
        preflight.check_docs(checkout, self.loop)
        preflight.check_repository(checkout.top)
        settings = self._settings(options, checkout, more)
        if settings.way == "here":
            starting.check_here(checkout, settings)
        starting.check_alone(runs.here(), checkout, settings)
        takes_all = self.own["on_dirty"] == "snapshot"
        since = self.own["since"] or ""
        with starting.draft(runs.here(), checkout, options.id, settings, takes_all=takes_all, since=since) as draft:
            preflight.check_seen(checkout, draft.documents, since)
            if settings.way == "here":
                starting.check_clean(checkout, draft.point, settings.why)
            settings, agenda = agendas.prepare(draft.documents, settings)
            _warn(agenda, self.opens if options.strict else "")
            if self.given.dry_run and self.given.show.as_json:
                print(json.dumps(agendas.plan(settings, agenda, draft.point)))
                return 0
            if not agenda.selection.ready:
                return self._nothing(agenda)
            checks = [check.run for item in agenda.selection.ready for check in item.commands]
            way = narrowed(settings.way, "")
            internal, dry = settings.internal, self.given.dry_run
            loaded = starting.load(self._workflow, options, checks, self.loop, way, internal=internal, dry=dry)
            if self.given.dry_run:
                return self._show(settings, agenda, draft, preview.dry_run(loaded, options, configuration))
            settings = starting.settled(settings, draft.point)
            handle = starting.begin(loaded, options, settings, draft)
            if found:
                finding.archive(draft.documents, self.loop)
            self._introduce(handle, settings, agenda, draft)
            return handle

    def _settings(self, options: Choices, checkout: Folder, more: dict[str, Any]) -> Settings:
        """The settings, with where agents work."""
        asks = prompt.can_ask() and not self.given.show.detach
        settings = loop_flags.settings(self.loop, options.id, self.own, strict=options.strict, asks=asks)
        try:
            way, why, carry = place(self._workflow, options, checkout)
        except UsageError as error:
            if not more.get("internal"):
                raise
            hint = f"raymond {self.loop} start has agents of its own, which need none"
            raise UsageError(f"internal mode needs a copy of the project: {error}", hint=hint) from None
        return replace(settings, way=way, why=why, carry=carry, **more)

    @property
    def _workflow(self) -> str:
        return self.own.get("workflow") or starting.WORKFLOW

    def _take_up(self, found: Found | None) -> int | None:
        """Conclude or resume what was found; None when a new loop is to begin."""
        if found and self.given.dry_run and found.loop and not found.loop.run.is_over:
            loop_verbs.tell(
                f"{found.loop.id} has not ended: start would ask whether to resume it; a new loop would do this"
            )
        if found is None or self.given.dry_run:
            return None
        if found.is_unconcluded:
            loop_verbs.conclude(found, self.given.show)
        if found.status == "failed":
            loop_verbs.give_up(found, self.loop)
        if found.status in ("complete", "failed"):
            return None
        return loop_verbs.take_up(found, self.loop, flags.as_resumption(self.given), yes=self.own["yes"])

    def _introduce(self, handle: RunHandle, settings: Settings, agenda: Agenda, draft: Draft) -> None:
        """Say what begins."""
        most = f", at most {settings.most}" if settings.most else ""
        count = words.many(len(agenda.selection.ready), "item")
        loop_verbs.tell(f"{handle.id}: {count} in {agenda.where}{most}")
        for line in starting.introduction(settings, draft.point):
            loop_verbs.tell(f"{handle.id}: {line}")
        if not settings.internal:
            loop_verbs.introduce(handle)
            choice.warn_of_reach(handle)
            choice.warn_of_company(handle)

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

    def _show(self, settings: Settings, agenda: Agenda, draft: Draft, made: preview.Preview) -> int:
        """What would be done, by whom, where and with which rights."""
        made = replace(made, start=replace(made.start, workspace=settings.way))
        most = settings.most or len(agenda.selection.ready)
        print(f"queue:    {agenda.where}")
        for number, item in enumerate(agenda.selection.ready, 1):
            check = " && ".join(one.run for one in item.commands) or ("a person" if item.criteria else "no check")
            later = "" if number <= most or item.group else f" (not in this run: {MOST[self.loop][0]})"
            print(said(f"  {number}. {item.title}: {check}{later}", sys.stdout))
        for title, why in agenda.passed():
            print(said(f"  -  {title}: {why}", sys.stdout))
        sys.stdout.write(dry_run.of_loop(made, list(starting.introduction(settings, draft.point))))
        print("nothing was started")
        return 0


def place(workflow: str, options: Choices, checkout: Folder) -> tuple[Way, str, tuple[str, ...]]:
    """Where the agents of a loop work, why not further apart, and what they carry along."""
    loaded = starts.load(workflow, options.overrides)
    way, why = starting.way_of(runs.here(), checkout.top, options.workspace, loaded, options)
    return way, why, tuple(loaded.workflow.settings.carry)


def _warn(agenda: Agenda, opens: str = "") -> None:
    """Say what may not mean what its author thinks; with `opens`, how a person gets at it, refuse it."""
    for doubt in agenda.looked.doubts:
        told = agenda.placed(doubt)
        if opens:
            raise UsageError(told, hint=f"{opens}; without --strict, this only warns")
        loop_verbs.tell(f"warning: {told}")
