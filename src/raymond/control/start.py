"""Start a run: what a person says, and the first decision that follows from it."""

import os
from collections.abc import Mapping
from time import time
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from raymond import __version__
from raymond.backends import registry
from raymond.control import arguments, config, inside, preflight, programs, runs
from raymond.control.config import Config
from raymond.control.handle import RunHandle
from raymond.control.preflight import Proposal
from raymond.control.settings import KEYS, OPTIONS, SiteRules
from raymond.control.settings import Options as Options
from raymond.errors import Diagnostic, RunExists, UsageError
from raymond.language.settings import Settings
from raymond.language.workflow import Workflow
from raymond.machine import decide
from raymond.machine.agent import SCRIPTED
from raymond.machine.events import UNRECORDED, Decision, Recording, RunStarted
from raymond.machine.prices import UNKNOWN_TURN, Price
from raymond.machine.run_started import TURNS_AT_ONCE
from raymond.store import journal, loader, trust, workflow_snapshot
from raymond.store import project as projects
from raymond.store.loader import Loaded as Loaded
from raymond.store.project import Project
from raymond.store.run_folder import ID_FORM
from raymond.system import git

_SETTLED = {"backend", "small_model", "budget", "roots", "replies", "workspace", "on_ask", "notify"}
"""Options that are not taken as they are: the workflow comes first, or they are checked."""
_TAKEN = ({*OPTIONS, "max_agents"} & {*RunStarted.__struct_fields__}) - _SETTLED
"""What a run takes of the options or, where they are silent, of the workflow."""

_HASH = 'printf %s "$KEY" | sha256sum | cut -c 1-64'


class Choices(Options, kw_only=True):
    """What a run starts with: the person's options, the settings where they said nothing, and the site rules."""

    loop: str = ""
    """The loop that the run is."""
    apart: bool = False
    """It goes on in the background, whatever becomes of the step that starts it."""
    recording: Recording = UNRECORDED
    """Where else its first driver writes what happens."""
    tables: dict[str, dict[str, Any]] = {}
    """The backends of the configuration."""
    prices: dict[str, Price] = {}
    unknown_turn_cost: float = UNKNOWN_TURN
    backend_was_typed: bool = False
    budget_from: str = ""
    rules: SiteRules = SiteRules()
    from_project: list[str] = []
    """The keys whose values come from the project, which may only lower what the workflow says."""


def load(path: str, overrides: Mapping[str, Mapping[str, Any]] = {}) -> Loaded:
    """Read the workflow at `path`: a folder, a zip, or one state file."""
    return loader.load(path, overrides=overrides)


def load_workflow(path: str) -> Workflow:
    """Read the workflow at `path`: a folder, a zip, or one state file; what is wrong inside it is left to `check`."""
    return load(path).workflow


def start(path: str, options: Options | None = None) -> RunHandle:
    """Begin a run of the workflow at `path` in the project here; the first decision is written, nothing is driven."""
    options = _checked(options if options is not None else Options())
    loaded = load(path, options.overrides)
    return begin_here(loaded, configured(options, configuration(options), config.site_rules()))


def configuration(options: Options) -> Config:
    """The settings here, with what `options` say."""
    said = {name: value for name, value in asdict(options).items() if name in KEYS and value not in (None, "")}
    return config.load(config.tree_of(os.getcwd()), flags=said)


def _checked(options: Options) -> Options:
    """`options` of a program, which may pass anything; refused before anything is written."""
    if not isinstance(options, Options):
        raise UsageError("the options of a run are a raymond.Options", hint='raymond.Options(input="...", budget=2)')
    try:
        options = msgspec.convert(asdict(options), Options)
    except msgspec.ValidationError as error:
        raise UsageError(f"Options: {str(error).lower()}", hint="`raymond docs python` names every option") from None
    for name in options.variables:
        arguments.check_variable(name)
    texts = {"id": options.id, "input": options.input, **options.variables}
    for what, text in (*texts.items(), ("overrides", str(options.overrides)), ("variables", str(options.variables))):
        arguments.check_text(text, what)
    return options


def configured(options: Options, settings: Config, rules: SiteRules) -> Choices:
    """`options` completed from `settings`, which include the person's own, under the site rules."""
    preflight.check_skip(settings, rules, skips=options.skip_permissions)
    known = {name: value for name in OPTIONS if name in KEYS and (value := settings.said(name)) is not None}
    return Choices(
        **asdict(options) | known,
        from_project=[key for key, one in settings.settings.items() if one.origin.endswith(trust.SETTINGS_FILE)],
        backend_was_typed=settings.settings["backend"].origin.startswith("--"),
        tables=settings["backends"],
        prices=settings["prices"],
        unknown_turn_cost=settings["unknown_turn_cost"],
        budget_from=settings.settings["budget"].origin,
        rules=rules,
    )


class Prepared(Struct, frozen=True):
    """What a run would start with, and what is doubtful about it."""

    start: RunStarted
    warnings: list[Diagnostic]


def prepare(loaded: Loaded, options: Choices, *, look: bool = True) -> Prepared:
    """What a run would start with; raises whatever is wrong, before anything is written.

    Without `look`, the programs that answer prompts need not be there.
    """
    inside.check_workspace()
    with preflight.errors_located(loaded):
        return _prepared(loaded, options, look=look)


def _prepared(loaded: Loaded, options: Choices, *, look: bool) -> Prepared:
    workflow = loaded.workflow
    found = preflight.check_workflow(loaded, _backend(workflow, loaded, options), options.variables)
    settings = workflow.settings
    if settings.input_required and not options.input:
        hint = f"--input TEXT ({settings.input_hint})" if settings.input_hint else "--input TEXT"
        raise UsageError(f"{workflow.name} needs an input", hint=hint)
    started = _start(workflow, loaded, options)
    found += preflight.start_warnings(loaded, started)
    warnings = preflight.located(found, loaded)
    if options.strict:
        preflight.refuse_warnings(warnings)
    has_workspace = started.workspace != "here" or workflow.has_workspaces
    if has_workspace:
        from raymond.control import workspaces

        project = projects.at(os.getcwd())
        workspaces.check(project, started, workflow)
        started = replace(started, setup=started.setup or workspaces.setup(project))
    elif name := next((state.name for state in workflow.states.values() if state.policy.may_change), ""):
        hint = "use --workspace isolated or copy"
        raise UsageError(f"{name} has `may_change`, which needs a workspace", hint=hint)
    asked = Proposal(loaded, started, options.tables, options.rules, roots=started.roots)
    checked = preflight.check_start(asked, look=look)
    if has_workspace:
        workspaces.logins(checked, workflow, options.tables)
    return Prepared(checked, warnings)


def begin(project: Project, loaded: Loaded, options: Choices) -> str:
    """Write the first decision of a new run; its id."""
    return _begin(project, loaded, options).start.workflow_id


def _begin(project: Project, loaded: Loaded, options: Choices) -> Prepared:
    prepared = prepare(loaded, options)
    started = inside.narrowed(inside.starter(), prepared.start)
    started = replace(
        started, commit=git.head(project.tree), programs=programs.answering(started, loaded.workflow, options.tables)
    )
    if options.trust_project or any(state.kind == "prompt" for state in loaded.workflow.states.values()):
        from raymond.control import trust  # scripts have no agents' programs

        trust.decide(project, started, loaded.workflow, trusts_now=options.trust_project)
    project.make()
    decision = Decision(seq=1, time=round(time(), 3), events=decide.begin(started))
    journal.create(project.run(started.workflow_id), decision, lambda folder: workflow_snapshot.put(folder, loaded))
    return replace(prepared, start=started)


def begin_here(loaded: Loaded, options: Choices) -> RunHandle:
    """Write the first decision of a new run in the project here."""
    project = projects.at(os.getcwd())
    begun = _begin(project, loaded, options)
    id = begun.start.workflow_id
    return RunHandle(project, id, loaded, trusts_now=options.trust_project, warnings=begun.warnings)


def _start(workflow: Workflow, loaded: Loaded, options: Choices) -> RunStarted:
    settings = workflow.settings
    name = workflow.name or "run"
    id = options.id or f"{name[:80]}-{os.urandom(4).hex()}"
    if not ID_FORM.fullmatch(id):
        raise UsageError(f"`{id}` is not a valid id", hint="use up to 100 letters, digits, _ and -")
    backend = _backend(workflow, loaded, options)
    parallel = _limit(options, "max_parallel", settings)
    return RunStarted(
        **{name: value for name in _TAKEN if (value := _limit(options, name, settings)) is not None},
        workflow_id=id,
        key=_key(),
        name=name,
        scope_dir=arguments.check_path(loaded.scope_dir, "the path of the workflow"),
        source=loaded.digest,
        entry=workflow.entry,
        cwd=arguments.check_path(os.getcwd(), "the path of this directory", "rename it, or use --cd"),
        metadata=options.variables,
        backend=backend,
        backends={
            state.name: state.policy.backend
            for state in workflow.states.values()
            if state.policy.backend and state.policy.backend != backend
        },
        small_model=settings.small_model or options.small_model,
        budget=_budget(options, settings),
        budget_from=_budget_from(options, settings),
        prices=options.prices,
        unknown_turn_cost=options.unknown_turn_cost,
        max_turns_at_once=parallel or TURNS_AT_ONCE,
        max_scripts_at_once=parallel or 2 * (os.cpu_count() or 1),
        # What a workflow asks for in addition is refused, or lies in one of these: it opens nothing.
        roots=[arguments.real_root(root) for root in options.roots],
        replies=arguments.check_path(options.replies or "", "--replies"),
        allowed_tools=_tools(workflow, options),
        workspace=options.workspace or settings.workspace or "here",
        carry=list(settings.carry),
        lend=list(settings.lend),
        net=settings.net,
        setup=settings.setup,
        on_ask="fail" if options.on_ask == "fail" else "",
        apart=options.apart,
        recording=options.recording,
        loop=options.loop,
        notify=[arguments.check_path(arguments.notify_target(target), "--notify") for target in options.notify or []],
        version=__version__,
    )


def _tools(workflow: Workflow, options: Choices) -> list[str]:
    allowed = options.allow_tools or []
    if not options.allow_gate_commands:
        return allowed
    from raymond.control import gate

    return list(dict.fromkeys([*allowed, *gate.tool_patterns(workflow)]))


def _backend(workflow: Workflow, loaded: Loaded, options: Choices) -> str:
    """What answers the prompts that name no backend."""
    of_workflow: str = workflow.settings.defaults.get("backend", "")
    found = options.backend or of_workflow or registry.default(options.replies, loaded.files)
    # Replies that were given for this run are meant to be used, whatever a file says about all of them.
    is_meant = options.replies and not options.backend_was_typed
    return SCRIPTED[0] if is_meant and found not in SCRIPTED else found


def backends_of(loaded: Loaded, options: Choices) -> list[str]:
    """What answers the prompts of a run."""
    named = [state.policy.backend for state in loaded.workflow.states.values() if state.kind == "prompt"]
    return [one or _backend(loaded.workflow, loaded, options) for one in named]


def _key() -> str:
    """A random UUID; the module for them takes longer to import than a run takes to begin."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _limit(options: Choices, key: str, settings: Settings) -> Any:
    """What a person says comes before what the workflow says; a project may only say less than that."""
    asked, of_workflow = getattr(options, key, None), getattr(settings, key, None)
    if asked is None or key not in options.from_project:
        return asked if asked is not None else of_workflow
    return min((one for one in (asked, of_workflow) if one), default=asked)


def _budget(options: Choices, settings: Settings) -> float:
    asked: float = _first(_limit(options, "budget", settings), KEYS["budget"].default)
    most = options.rules.max_budget
    return most if most and not 0 < asked <= most else asked


def _budget_from(options: Choices, settings: Settings) -> str:
    if options.rules.max_budget and _budget(options, settings) == options.rules.max_budget:
        return config.SITE_FILE
    if options.budget is not None and _limit(options, "budget", settings) == options.budget:
        return options.budget_from
    return "the workflow" if settings.budget is not None else "default"


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


# --- started again with the id of a run


class Repetition(Struct, frozen=True):
    """The run that an earlier start with the same key has begun."""

    handle: RunHandle
    status: str
    same_input: bool
    is_cut_off: bool
    """It should be running, and a kill or a shutdown has ended the process that drove it."""


def check_id(key: str) -> None:
    """Refuse a key that cannot be the id of a run."""
    if not ID_FORM.fullmatch(key):
        hint = f"use up to 100 letters, digits, _ and -; of anything else, take a hash: {_HASH}"
        raise UsageError(f"`{key}` cannot be the id of a run", hint=hint)


def is_id_taken(key: str, directory: str) -> bool:
    """Whether a run of the project of `directory` has this id."""
    return bool(key) and projects.at(os.path.abspath(directory)).run(key).exists


def find_repetition(loaded: Loaded, options: Choices) -> Repetition | None:
    """The run of this project that has the id already; None when there is none. Another workflow is a mistake."""
    project = runs.here()
    if not options.id or not project.run(options.id).exists:
        return None
    seen = runs.look(project, options.id)
    started = seen.run.start
    if not _is_same_workflow(started, loaded):
        raise _other_workflow(started, project.run(options.id).path)
    return Repetition(
        RunHandle(project, options.id, trusts_now=options.trust_project),
        seen.status,
        same_input=started.input == options.input,
        is_cut_off=not seen.pid and (seen.status == runs.INTERRUPTED or runs.was_shut_down(seen.run)),
    )


def _is_same_workflow(started: RunStarted, loaded: Loaded) -> bool:
    """Whether the run was started with this workflow, which may have changed or moved since, but not both."""
    is_same_text = started.source == loaded.digest
    return started.entry == loaded.workflow.entry and (is_same_text or started.scope_dir == loaded.scope_dir)


def _other_workflow(started: RunStarted, path: str) -> RunExists:
    what = f"the loop {started.loop}" if started.loop else f"{started.scope_dir} at {started.entry}"
    return RunExists(
        f"run `{started.workflow_id}` was started with another workflow, {what}",
        path=path,
        hint=f"`raymond status {started.workflow_id}` shows it; choose another --id",
    )


def has_driver(run: RunHandle) -> bool:
    """Whether a process drives it, or is about to."""
    return runs.is_driven(run.project.run(run.id))
