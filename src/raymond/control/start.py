"""Begin a run and take one up: workflow, journal, lock and backends brought together."""

import os
from collections.abc import Callable, Iterator
from operator import attrgetter
from time import time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond import __version__
from raymond.backends import registry
from raymond.control import config
from raymond.drivers.local import Driver, Face
from raymond.errors import Diagnostic, JournalError, UsageError, WorkflowError
from raymond.language import lint
from raymond.language.workflow import Workflow
from raymond.machine import decide, rights
from raymond.machine.events import Decision, RunStarted
from raymond.machine.prices import UNKNOWN_TURN, Price
from raymond.machine.run import Run
from raymond.machine.variables import Placed
from raymond.secrets import Secrets
from raymond.store import journal, loader, lock
from raymond.store.loader import Loaded
from raymond.store.lock import Lock
from raymond.store.project import ID_FORM, Project


class Options(Struct, kw_only=True):
    """What a person says at the start; None means: not said."""

    id: str = ""
    input: str = ""
    variables: dict[str, str] = {}
    overrides: dict[str, dict[str, Any]] = {}
    backend: str = ""
    model: str = ""
    effort: str = ""
    replies: str | None = None
    """The text of `--replies FILE`."""
    tables: dict[str, dict[str, Any]] = {}
    """The backends of the configuration."""
    prices: dict[str, Price] = {}
    unknown_turn_cost: float = UNKNOWN_TURN
    retryable: list[str] = []
    budget: float | None = None
    budget_from: str = ""
    most_budget: float = 0.0
    """What the policy file allows at most; 0 when it says nothing."""
    backends: list[str] = []
    """The only ones the policy file allows; empty when it says nothing."""
    models: list[str] = []
    max_iterations: int | None = None
    max_time: float = 0.0
    max_turns: int = 0
    max_parallel: int | None = None
    timeout: float = 0.0
    tool_timeout: float = 0.0
    max_wait: float = config.KEYS["max_wait"].default
    patience: float = config.KEYS["patience"].default
    roots: list[str] = []
    permission_mode: str = ""
    allowed_tools: list[str] = []
    skip_permissions: bool = False
    notify: list[str] = []


def prepare(loaded: Loaded, options: Options) -> RunStarted:
    """What a run would start with; whatever is wrong is said here, before anything is written."""
    workflow = loaded.workflow
    check(workflow)
    settings = workflow.settings
    if settings.input_required and not options.input:
        hint = f"--input TEXT ({settings.input_hint})" if settings.input_hint else "--input TEXT"
        raise UsageError(f"{workflow.name} needs an input", hint=hint)
    start = _start(workflow, loaded, options)
    return check_start(loaded, start, options.tables, options.backends, options.models)


def check_start(
    loaded: Loaded, start: RunStarted, tables: registry.Tables, backends: list[str], models: list[str]
) -> RunStarted:
    """Refuse what the policy file, the backends or the rights of who starts it are against; what it starts with."""
    workflow = loaded.workflow
    _check_rules(workflow, start, backends, models)
    able = registry.check(workflow, start, loaded.files, tables)
    start = replace(start, in_place=[name for name, can in able.items() if not can.branches])
    modes, tools = ({name for name, can in able.items() if not has(can)} for has in (_HAS_MODES, _HAS_TOOLS))
    wrong = [*rights.wider(workflow, start, registry.SCRIPTED), *rights.unheeded(workflow, start, modes, tools)]
    prompts = [state.name for state in workflow.states.values() if state.kind == "prompt"]
    named = {name: start.backends.get(name, start.backend) for name in prompts}
    wrong += lint.polluting(workflow, {name: one for name, one in named.items() if one in start.in_place})
    if wrong:
        raise WorkflowError(*wrong)
    return start


_HAS_MODES, _HAS_TOOLS = attrgetter("modes"), attrgetter("tools")


def check(workflow: Workflow) -> None:
    """Refuse a workflow that lint finds errors in."""
    problems = [*lint.errors(workflow), *_exposed(workflow)]
    if problems:
        raise WorkflowError(*problems)


def _exposed(workflow: Workflow) -> Iterator[Diagnostic]:
    """States in which the value of a secret variable of this environment stands."""
    known = Secrets.of(os.environ)
    texts = [(state.name, state.body) for state in workflow.states.values()] + list(workflow.lib.items())
    if not known.find("\n".join(text for _, text in texts)):
        return  # one look at all of them: a workflow may have a thousand states
    for name, text in texts:
        found = known.find(text)
        if found.startswith("the value of"):
            message, hint = f"{name} contains {found}", "a step reads secrets from its environment"
            yield Diagnostic(id="secret-in-state", message=message, file=name, hint=hint)


def keep(project: Project, loaded: Loaded) -> None:
    """Write the snapshot, unless it is there."""
    project.folder("sources")
    source = project.source(loaded.digest)
    if not os.path.exists(source):
        journal.replace(source, loaded.source, durable=True)


def begin(project: Project, loaded: Loaded, options: Options) -> str:
    """Write the first decision of a new run; its id."""
    start = prepare(loaded, options)
    keep(project, loaded)
    decision = Decision(seq=1, time=round(time(), 3), events=decide.begin(start))
    journal.create(project, start.workflow_id, decision)
    return start.workflow_id


def _start(workflow: Workflow, loaded: Loaded, options: Options) -> RunStarted:
    settings = workflow.settings
    name = workflow.name or "run"
    id = options.id or f"{name[:80]}-{os.urandom(4).hex()}"
    if not ID_FORM.fullmatch(id):
        raise UsageError(f"`{id}` cannot be an id", hint="use up to 100 letters, digits, _ and -")
    backend = options.backend or settings.defaults.get("backend") or registry.usual(options.replies, loaded.files)
    parallel = options.max_parallel or settings.max_parallel
    return RunStarted(
        workflow_id=id,
        key=_key(),
        name=name,
        scope_dir=loaded.scope_dir,
        source=loaded.digest,
        entry=workflow.entry,
        cwd=os.getcwd(),
        input=options.input,
        metadata=options.variables,
        backend=backend,
        backends={
            state.name: state.policy.backend
            for state in workflow.states.values()
            if state.policy.backend and state.policy.backend != backend
        },
        model=options.model,
        effort=options.effort,
        budget=_budget(options, settings.budget),
        budget_from=_budget_from(options, settings.budget),
        max_iterations=_first(options.max_iterations, settings.max_iterations, 0),
        max_time=options.max_time,
        max_turns=options.max_turns,
        timeout=options.timeout,
        tool_timeout=options.tool_timeout,
        retryable=options.retryable,
        prices=options.prices,
        unknown_turn_cost=options.unknown_turn_cost,
        max_agents=settings.max_agents or 10_000,
        max_turns_at_once=parallel or 4,
        max_scripts_at_once=parallel or 2 * (os.cpu_count() or 1),
        max_wait=options.max_wait,
        patience=options.patience,
        roots=[os.path.abspath(root) for root in (*settings.roots, *options.roots)],
        overrides=options.overrides,
        replies=options.replies or "",
        permission_mode=options.permission_mode,
        allowed_tools=options.allowed_tools,
        skip_permissions=options.skip_permissions,
        notify=options.notify,
        version=__version__,
    )


def _key() -> str:
    """A random UUID; the module for them takes longer to import than a run takes to begin."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _budget(options: Options, of_workflow: float | None) -> float:
    asked: float = _first(options.budget, of_workflow, config.KEYS["budget"].default)
    most = options.most_budget
    return most if most and not 0 < asked <= most else asked


def _budget_from(options: Options, of_workflow: float | None) -> str:
    if options.most_budget and _budget(options, of_workflow) == options.most_budget:
        return config.POLICY_FILE
    if options.budget is not None:
        return options.budget_from
    return "the workflow" if of_workflow is not None else "default"


def _check_rules(workflow: Workflow, start: RunStarted, backends: list[str], models: list[str]) -> None:
    """The policy file holds for what a workflow names too."""
    for state in workflow.states.values():
        for what, named, allowed in (
            ("backend", state.policy.backend, backends),
            ("model", state.policy.model, models),
        ):
            if allowed and named and named not in allowed:
                raise UsageError(
                    f"{config.POLICY_FILE} allows no {what} `{named}`, which {state.name} names",
                    hint=f"one of: {', '.join(allowed)}",
                )
    if backends and start.backend not in backends:
        raise UsageError(
            f"{config.POLICY_FILE} allows no backend `{start.backend}`", hint=f"one of: {', '.join(backends)}"
        )


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def take_up(
    project: Project,
    id: str,
    face: Face,
    *,
    loaded: Loaded | None = None,
    force: bool = False,
    clock: Callable[[], float] = time,
) -> "Held":
    """Hold the lock of a run and make it ready to be driven."""
    held = lock.take(project.beside(id, "lock"), force=force)
    try:
        reading = journal.read(project, id)
        if reading.torn:
            face.said(f"{reading.torn} bytes at the end of the journal were torn off and are dropped")
        placed = place(project, reading.run, loaded)
        book = journal.Journal(project, id, reading.size)
        settings = config.load(project.root)
        backends = registry.make(project, reading.run, placed, settings["backends"])
        strict = settings["durability"] == "strict"
        driver = Driver(project, reading.run, placed, book, backends, face, strict=strict, clock=clock)
    except BaseException:
        held.release()
        raise
    return Held(held, book, driver)


class Held:
    """A run this process may drive, until it is closed."""

    def __init__(self, held: Lock, book: journal.Journal, driver: Driver) -> None:
        self.lock = held
        self.driver = driver
        self._journal = book

    def close(self) -> None:
        """Close the journal, then let others drive."""
        try:
            self._journal.close()
        finally:
            self.lock.release()


def place(project: Project, run: Run, loaded: Loaded | None = None) -> Placed:
    """The workflow of a run from its snapshot, unpacked in a private folder."""
    start = run.start
    if loaded is None:
        try:
            with open(project.source(start.source), "rb") as file:
                data = file.read()
        except OSError as error:
            path, why = project.source(start.source), (error.strerror or "").lower()
            raise JournalError(
                f"the snapshot of the workflow cannot be read: {path}: {why}",
                path=path,
                hint=f"put the file back, then `raymond resume {start.workflow_id}`",
            ) from None
        workflow = loader.from_source(data, name=start.name, entry=start.entry, overrides=start.overrides)
    else:
        workflow = loaded.workflow
    # Named for its content, so that runs of the same workflow share it; whatever was changed in it is mended here.
    folder = project.path("work", start.source[:16])
    try:
        loader.lay_out(loaded.files, folder) if loaded else loader.unpack(data, folder)
    except OSError as error:
        raise JournalError(
            f"{folder}: {(error.strerror or '').lower()}",
            path=folder,
            hint=f"scripts run from there; mend this, then `raymond resume {start.workflow_id}`",
        ) from None
    uses = any("task_folder" in state.body.lower() for state in workflow.states.values())
    uses = uses or any("task_folder" in text.lower() for text in workflow.lib.values())
    return Placed(workflow, folder, project.path("tasks", start.workflow_id), uses)
