"""Start a run: what a person says, and the first decision that follows from it."""

import os
from collections.abc import Mapping
from time import time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond import __version__
from raymond.backends import registry
from raymond.control import config, exposure, preflight
from raymond.control.config import Config, SiteRules
from raymond.control.handle import RunHandle
from raymond.control.preflight import Proposal
from raymond.errors import UsageError
from raymond.language.workflow import Workflow
from raymond.machine import decide
from raymond.machine.events import Decision, RunStarted
from raymond.machine.prices import UNKNOWN_TURN, Price
from raymond.store import journal, loader
from raymond.store import project as projects
from raymond.store.loader import Loaded
from raymond.store.project import ID_FORM, Project
from raymond.store.sources import keep


class Options(Struct, kw_only=True):
    """What a person says at the start; what is None, empty or 0 was not said."""

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


_CONFIGURED = {
    **{key: key for key in ("backend", "model", "effort", "budget", "max_iterations", "max_time", "max_turns")},
    **{key: key for key in ("max_parallel", "timeout", "permission_mode", "notify")},
    "allowed_tools": "allow_tools",
}
"""Options that the configuration can set too, and the keys they have there."""


def load(path: str, overrides: Mapping[str, Mapping[str, Any]] = {}) -> Loaded:
    """Read the workflow at `path`: a folder, a zip, or one state file."""
    return loader.load(path, overrides=overrides)


def load_workflow(path: str) -> Workflow:
    """Read the workflow at `path`: a folder, a zip, or one state file; what is wrong inside it is left to `check`."""
    return load(path).workflow


def start(path: str, options: Options | None = None) -> RunHandle:
    """Begin a run of the workflow at `path` in the project here; the first decision is written, nothing is driven."""
    options = options or Options()
    for what, text in (("id", options.id), ("input", options.input), *options.variables.items()):
        exposure.check(text, what)
    loaded = load(path, options.overrides)
    said = {key: getattr(options, name) or None for name, key in _CONFIGURED.items()}
    said["budget"] = options.budget  # 0 means no limit
    settings = config.load(config.root_of(os.getcwd()), flags=said)
    return begin_here(loaded, configured(options, settings, config.site_rules()))


def configured(options: Options, settings: Config, rules: SiteRules) -> Options:
    """`options` with what `settings` say, among them the person's own words, and under the site rules."""
    preflight.check_skip(settings, rules, skips=options.skip_permissions)
    return replace(
        options,
        backend=settings.said("backend") or "",
        model=settings["model"],
        effort=settings["effort"],
        tables=settings["backends"],
        prices=settings["prices"],
        unknown_turn_cost=settings["unknown_turn_cost"],
        retryable=settings["retryable"],
        budget=settings.said("budget"),
        budget_from=settings.settings["budget"].origin,
        most_budget=rules.max_budget,
        backends=rules.backends,
        models=rules.models,
        max_iterations=settings.said("max_iterations"),
        max_time=settings["max_time"],
        max_turns=settings["max_turns"],
        max_parallel=settings.said("max_parallel"),
        timeout=settings.said("timeout") or 0.0,
        tool_timeout=settings.said("tool_timeout") or 0.0,
        max_wait=settings["max_wait"],
        patience=settings["patience"],
        permission_mode=settings["permission_mode"],
        allowed_tools=settings["allow_tools"],
        notify=settings["notify"],
    )


def prepare(loaded: Loaded, options: Options) -> RunStarted:
    """What a run would start with; whatever is wrong is said here, before anything is written."""
    workflow = loaded.workflow
    preflight.check_workflow(workflow)
    settings = workflow.settings
    if settings.input_required and not options.input:
        hint = f"--input TEXT ({settings.input_hint})" if settings.input_hint else "--input TEXT"
        raise UsageError(f"{workflow.name} needs an input", hint=hint)
    started = _start(workflow, loaded, options)
    return preflight.check_start(Proposal(loaded, started, options.tables, options.backends, options.models))


def begin(project: Project, loaded: Loaded, options: Options) -> str:
    """Write the first decision of a new run; its id."""
    started = prepare(loaded, options)
    keep(project, loaded)
    decision = Decision(seq=1, time=round(time(), 3), events=decide.begin(started))
    journal.create(project, started.workflow_id, decision)
    return started.workflow_id


def begin_here(loaded: Loaded, options: Options) -> RunHandle:
    """Write the first decision of a new run in the project here, which is made when there is none."""
    project = projects.make(os.getcwd())
    return RunHandle(project, begin(project, loaded, options), loaded)


def _start(workflow: Workflow, loaded: Loaded, options: Options) -> RunStarted:
    settings = workflow.settings
    name = workflow.name or "run"
    id = options.id or f"{name[:80]}-{os.urandom(4).hex()}"
    if not ID_FORM.fullmatch(id):
        raise UsageError(f"`{id}` cannot be an id", hint="use up to 100 letters, digits, _ and -")
    backend = options.backend or settings.defaults.get("backend") or registry.default(options.replies, loaded.files)
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
        return config.SITE_FILE
    if options.budget is not None:
        return options.budget_from
    return "the workflow" if of_workflow is not None else "default"


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
