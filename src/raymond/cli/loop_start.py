"""Start a loop: its flags, the settings they make, and the start of a loop over sessions, tasks or stories."""

import json
import os
import sys
from collections.abc import Collection
from typing import Annotated, Any

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from raymond import durations
from raymond.cli import driving, dry_run, flags, loop_verbs, prompt
from raymond.cli import run as runs_of
from raymond.cli.by_click import Typed
from raymond.cli.flags import StartFlags, flag_of, flag_rows
from raymond.control import preview, runs
from raymond.control import start as starts
from raymond.control.handle import RunHandle
from raymond.control.settings import GIT, LIMITS, SWITCH, TASK, TEXT, Row, choice, count, duration, rows
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
from raymond.loops.settings import ON_DIRTY, RALPH, SESSION, STORIES, TASKS, Settings
from raymond.loops.starting import Draft
from raymond.text import digits

LIMITS_OF_LOOPS = {
    SESSION: ("--max-sessions", 5, "Items"),
    RALPH: ("--max-iterations", 10, "Iterations"),
    TASKS: ("--max-iterations", 10, "Tasks"),
    STORIES: ("--max-stories", 3, "Stories"),
}
"""The flag that limits what a loop counts, what holds without it, and what it counts."""
_ITEMS, _ALL = (SESSION, TASKS, STORIES), (SESSION, TASKS, STORIES, RALPH)

_ROWS = rows(Settings)
DOCS = flag_of(_ROWS["docs"])
_OF_RALPH = {
    "max_failures": replace(
        _ROWS["max_failures"], about="Iterations in a row in which the agent's program fails, until a person is asked."
    ),
}
"""What means something else where there are no items."""

_ONCE = ("id", "id_", "since", "source", "yes", "dry_run", "detach", "as_json", "resumes", "starts", "wait")
"""Parameters that say nothing about the next start."""


class OnceFlags(Struct):
    """What is said about one start of a loop, and not kept with it."""

    pin_prompt: Annotated[
        bool, Row("Read the prompt once; changes of its file do not count.", SWITCH, TASK, where=(RALPH,))
    ] = False
    no_commit: Annotated[
        bool, Row("Make no branch: what counts comes into the checkout at the end.", SWITCH, GIT, where=_ITEMS)
    ] = False
    on_dirty: Annotated[
        str, Row("Whether agents find your uncommitted changes.", choice(*ON_DIRTY), GIT, where=_ALL)
    ] = "snapshot"
    since: Annotated[str, Row("Begin with this commit.", TEXT, GIT, flag="--from", metavar="REF", where=_ALL)] = ""
    workflow: Annotated[
        str,
        Row(
            "Run the workflow in DIR, made with eject.",
            TEXT,
            TASK,
            metavar="DIR",
            where=_ALL,
        ),
    ] = ""
    yes: Annotated[bool, Row("Do not ask whether to resume a loop that was cut off.", SWITCH, TASK, where=_ALL)] = False


def own_flags(loop: str, without: Collection[str] = ()) -> list[Any]:
    """The flags of a loop that `run` does not have."""
    flag, most, items = LIMITS_OF_LOOPS[loop]
    limit = Row(f"{items} at most; 0: no limit.", count(0), LIMITS, default=most, flag=flag, often=True, name="most")
    instead = _OF_RALPH if loop == RALPH else {}
    found = [limit, *flag_rows(Settings, loop, instead=instead), *flag_rows(OnceFlags, loop)]
    return [flag_of(row) for row in found if row.name not in without]


def settings_of(loop: str, id: str, given: dict[str, Any], **more: Any) -> Settings:
    """The settings that the flags of a loop make; `more` are those that no flag says."""
    for flag, name in (("--branch", "branch"), ("--from", "since")):
        if given[name] == "":
            raise UsageError(f"{flag} is empty", hint="is the variable it comes from set?")
    said = {name: given[name] for name in (*_ROWS, "most") if given.get(name) is not None}
    said |= {"branch": _branch_of(id, given), "typed": _typed_flags()}
    applies = bool(given.get("no_commit")) or given["branch"] == "current"
    return Settings(**said | {"loop": loop, "applies": applies} | more)


def _branch_of(id: str, given: dict[str, Any]) -> str:
    """The branch of a loop: its own, or the one that was named."""
    if given.get("no_commit"):
        return ""
    return given["branch"] if given["branch"] not in (None, "current") else f"raymond/{id}"


def _typed_flags() -> dict[str, list[str]]:
    """The flags that were typed, with their values, but for those that are about this one start."""
    context, found = click.get_current_context(), {}
    for param in context.command.params:
        is_typed = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if is_typed and isinstance(param, click.Option) and param.name not in _ONCE:
            value = context.params[param.name or ""]
            values = value if isinstance(value, tuple) else (value,)
            found[max(param.opts, key=len)] = [] if param.is_flag else [_written(param, one) for one in values]
    return found


def _written(option: click.Option, value: Any) -> str:
    """A value of a flag as a person types it."""
    if isinstance(option.type, Typed) and option.type.type.read is duration:
        return durations.written(value)
    return digits(value) if isinstance(value, float) else str(value)


# A start, as it was typed


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
        return driving.go(begun, self.given.show)

    def begin(self, **more: Any) -> RunHandle | int:
        """The run of a loop that has begun, with `more` settings that no flag says; the exit code if none has."""
        self.given, options, configuration = runs_of.choose(self.given)
        driving.check_log_file(self.given.show, dry=self.given.dry_run)
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
        settings = settings_of(self.loop, options.id, self.own, strict=options.strict, asks=asks)
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
        return loop_verbs.take_up(found, self.loop, flags.as_resumption(self.given, yes=self.own["yes"]))

    def _introduce(self, handle: RunHandle, settings: Settings, agenda: Agenda, draft: Draft) -> None:
        """Say what begins."""
        most = f", at most {settings.most}" if settings.most else ""
        count = words.many(len(agenda.selection.ready), "item")
        loop_verbs.tell(f"{handle.id}: {count} in {agenda.where}{most}")
        for line in starting.introduction(settings, draft.point):
            loop_verbs.tell(f"{handle.id}: {line}")
        if not settings.internal:
            loop_verbs.introduce(handle)
            driving.warn(handle)

    def _nothing(self, agenda: Agenda) -> int:
        print(f"nothing to do: {agenda.nothing}")
        blocked = [] if self.loop == SESSION else agenda.selection.blocked
        for number, (title, why) in enumerate(agenda.passed_over()):
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
            later = "" if number <= most or item.group else f" (not in this run: {LIMITS_OF_LOOPS[self.loop][0]})"
            print(said(f"  {number}. {item.title}: {check}{later}", sys.stdout))
        for title, why in agenda.passed_over():
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
    for warning in agenda.looked.warnings:
        told = agenda.placed(warning)
        if opens:
            raise UsageError(told, hint=f"{opens}; without --strict, this only warns")
        loop_verbs.tell(f"warning: {told}")
