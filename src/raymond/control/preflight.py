"""What is refused before anything is written, and what is only warned of before the first turn.

With --strict, a warning is refused as well.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from raymond import __version__, pasted
from raymond.backends import Abilities, registry
from raymond.control import config, programs
from raymond.control.settings import KEYS, OPTIONS, SiteRules
from raymond.errors import Diagnostic, UsageError, WorkflowError
from raymond.language import frontmatter, judges, reach, reading
from raymond.language.frontmatter import Mark
from raymond.language.settings import SETTINGS_FILE
from raymond.language.tags import BUILT_IN
from raymond.language.workflow import State, Workflow, mark_of
from raymond.machine import evaluators, limits, prices
from raymond.machine.events import RunStarted
from raymond.machine.run import Run
from raymond.redaction import Secrets, suspects
from raymond.store import loader, program_cache
from raymond.store import project as projects
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system import bash, git
from raymond.system.stragglers import MARK

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""What Claude Code or Codex take."""
_OWN_VARIABLES = "HOME CGROUP PORTABLE STEP STEP_KEY OUT INPUT_FILE VARS_FILE TITLE MESSAGE VAR".split()
_SIMILARITY = 0.75


class Proposal(Struct):
    """A start, or a change of workflow, that somebody asks for."""

    loaded: Loaded
    start: RunStarted
    tables: registry.Tables
    """The backends of the configuration."""
    rules: SiteRules
    able: Mapping[str, Abilities] = {}
    """What each backend can do; known once the backends were checked."""
    roots: list[str] | None = None
    """The directories that the person opened; None when that is not asked again."""

    @property
    def prompts(self) -> dict[str, State]:
        """The states that a backend answers."""
        return {state.name: state for state in judges.answered(self.loaded.workflow)}

    def backend_of(self, state: str) -> str:
        """The backend that answers `state`."""
        return self.start.backends.get(state, self.start.backend)


# --- the workflow alone


def findings(workflow: Workflow) -> list[Diagnostic]:
    """Everything found in a workflow, warnings too."""
    from raymond.language import lint

    return [*lint.check(workflow), *_exposed(workflow)]


def check_workflow(loaded: Loaded, backend: str, given: Collection[str] = ()) -> list[Diagnostic]:
    """Refuse a workflow that has errors; its warnings. `given` are the variables that a start sets."""
    workflow = loaded.workflow
    # Of a run that continues, more is reached, and a danger is looked at every time.
    is_kept = workflow.reach is None and not _has_dangers(workflow)
    facts = clean_facts(loaded, given)
    loaded.is_clean = is_kept and program_cache.is_clean(facts)
    if loaded.is_clean:
        found = []
    else:
        from raymond.language import lint

        found = [_weighed(one, workflow, backend) for one in lint.check(workflow, given)]
    problems = [*(one for one in found if one.severity == "error"), *_exposed(workflow)]
    if problems:
        raise WorkflowError(*problems)
    loaded.clean_by = facts if is_kept and not found else ()
    return found


def clean_facts(loaded: Loaded, given: Collection[str]) -> tuple[object, ...]:
    """Everything that decides what is found in a workflow, and in its scripts by bash."""
    one = loaded.workflow
    names = (sorted(one.runnable), sorted(one.beside), sorted(given))
    return (__version__, loaded.digest, one.name, one.entry, one.overrides, one.platform, *names)


def _has_dangers(workflow: Workflow) -> bool:
    """Whether something in it may be a secret, or a check unsafe: quick, and a no is always right."""
    states = workflow.states.values()
    return suspects("\n".join(state.body for state in states)) or any(
        _is_unsafe(check.run) for state in states for check in state.policy.gate
    )


def _is_unsafe(command: str) -> bool:
    from raymond.language import gate_rules

    return any(one.kind == "unsafe" for one in gate_rules.judge(command))


def _weighed(one: Diagnostic, workflow: Workflow, backend: str) -> Diagnostic:
    """Scripted replies cost nothing, and a program of one's own may add to the prompt: there it is a warning."""
    state = workflow.states.get(one.file)
    if one.id == "no-transition" and state and (state.policy.backend or backend) not in registry.PROGRAMS:
        return replace(one, severity="warning")
    return one


def _exposed(workflow: Workflow) -> Iterator[Diagnostic]:
    """States that contain the value of a secret variable of this environment."""
    known = Secrets.of(os.environ)
    texts = [(state.name, state.body) for state in workflow.states.values()] + list(workflow.lib.items())
    if not known.find("\n".join(text for _, text in texts)):
        return  # one look at all of them: a workflow may have a thousand states
    for name, text in texts:
        found = known.first(text)
        if found and found.named:
            message, hint = f"{name} contains {found.what}", "a step reads secrets from its environment"
            yield Diagnostic(id="secret-in-state", message=message, file=name, hint=hint)


# --- a run that continues


def check_site(run: Run, rules: SiteRules, workflow: Workflow) -> None:
    """Refuse to continue a run that the site rules would not let start today."""
    start, rights, id = run.start, run.rights, run.start.workflow_id
    if (rights.skip or rights.mode == "bypassPermissions") and not rules.allow_skip_permissions:
        raise UsageError(f"{config.SITE_FILE} does not allow what {id} may do: skip permissions", hint="start it again")
    if rules.max_budget and not 0 < (run.limits.budget or 0.0) <= rules.max_budget:
        hint = f"raymond resume {id} --budget {rules.max_budget:g}"
        what = f"{config.SITE_FILE} allows a budget of at most {prices.show(rules.max_budget)}"
        raise UsageError(what, hint=hint, again=hint)
    backends = {start.backend, *start.backends.values()}
    models = _models(run, workflow) if rules.models else set()
    for what, used, allowed in (("backend", backends, rules.backends), ("model", models, rules.models)):
        refused = sorted(used - set(allowed)) if allowed else []
        if refused:
            raise UsageError(
                f"{config.SITE_FILE} allows no {what} `{refused[0]}`", hint=f"one of: {', '.join(allowed)}"
            )


def _models(run: Run, workflow: Workflow) -> set[str]:
    """Every model that a run names: its start, its states, and what its agents chose so far."""
    start = run.start
    named = {start.model, *(model for state in workflow.states.values() for model in _named(workflow, start, state))}
    for agent in run.agents.values():
        named |= {agent.model, *(frame.model for frame in agent.stack or ())}
    return named - {""}


def _named(workflow: Workflow, start: RunStarted, state: State) -> Iterator[str]:
    """The models that a state names, and the one that judges it."""
    yield state.policy.model
    judge = judges.of_state(workflow, state)
    if state.policy.evaluator and isinstance(judge, str) and judge:
        backend = _judged_by(start, state.name, judge)
        yield evaluators.model_of(start, backend, state.policy.evaluator, workflow.states[judge])


def _judged_by(start: RunStarted, state: str, judge: str) -> str:
    """The backend of the judge of a state: that of the state, if it is a prompt."""
    return start.backends.get(state if state.endswith(".md") else judge, start.backend)


def check_place(project: Project, run: Run) -> None:
    """Refuse to continue a run whose directory is gone, has become another repository, or is not in its project."""
    start = run.start
    again = f"raymond resume {start.workflow_id} --cd DIR"
    hint = f"if the project was moved: {again}"
    if not os.path.isdir(start.cwd):
        raise UsageError(f"{start.cwd}, where {start.workflow_id} was started, is gone", hint=hint, again=again)
    if projects.at(start.cwd).tree != project.tree:
        what = f"{start.cwd}, where {start.workflow_id} was started, is not in {project.tree}, whose run it is"
        raise UsageError(what, hint=f"say where it continues: {again}", again=again)
    if not start.commit or git.head(git.top(start.cwd)) == start.commit:
        return
    if not git.has_commit(start.cwd, start.commit):
        what = f"{start.cwd} is not the repository that {start.workflow_id} was started in"
        raise UsageError(f"{what}: it has no commit {start.commit[:12]}", hint=hint, again=again)


# --- what the person asks for


def check_skip(settings: config.Config, rules: SiteRules, *, skips: bool) -> None:
    """Refuse to skip permissions, by flag or by mode, where the site rules forbid it."""
    how = "--dangerously-skip-permissions" if skips else ""
    if settings["permission_mode"] == "bypassPermissions":
        how = how or f"bypassPermissions ({settings.settings['permission_mode'].origin})"
    if how and not rules.allow_skip_permissions:
        raise UsageError(f"{config.SITE_FILE} does not allow {how}", hint="name the tools: --allow-tool")


def check_start(proposal: Proposal, *, look: bool = True) -> RunStarted:
    """Refuse what the site rules, a backend or the person's rights forbid; the start with `in_place` filled in.

    With `look`, the programs of the backends have to be there.
    """
    _check_rules(proposal)
    workflow, start = proposal.loaded.workflow, proposal.start
    programs.check_scripts(workflow)
    able = registry.check(workflow, start, proposal.loaded.files, proposal.tables, look=look)
    start = replace(start, in_place=[name for name, can in able.items() if not can.branches])
    proposal = replace(proposal, start=start, able=able)
    wrong = [found for check in CHECKS for found in check(proposal)]
    if wrong:
        raise WorkflowError(*wrong)
    return start


def _check_rules(proposal: Proposal) -> None:
    """The site rules also hold for what a workflow names."""
    workflow, rules = proposal.loaded.workflow, proposal.rules
    for state in workflow.states.values():
        for what, named, allowed in (
            ("backend", state.policy.backend, rules.backends),
            *(("model", model, rules.models) for model in _named(workflow, proposal.start, state)),
        ):
            if allowed and named and named not in allowed:
                raise UsageError(
                    f"{config.SITE_FILE} allows no {what} `{named}`, which {state.name} names",
                    hint=f"one of: {', '.join(allowed)}",
                )
    default, allowed = proposal.start.backend, rules.backends
    if allowed and default not in allowed:
        raise UsageError(f"{config.SITE_FILE} allows no backend `{default}`", hint=f"one of: {', '.join(allowed)}")


def wider(proposal: Proposal) -> Iterator[Diagnostic]:
    """Every state that asks for more rights than the person gave."""
    start, workflow = proposal.start, proposal.loaded.workflow
    if start.skip_permissions:
        return
    for state in proposal.prompts.values():
        if proposal.backend_of(state.name) in registry.SCRIPTED:
            continue  # a scripted backend has no rights to widen
        policy = state.policy
        given = start.permission_mode or limits.DEFAULT_MODE
        if policy.permission_mode and limits.MODE_RANKS[policy.permission_mode] > limits.MODE_RANKS[given]:
            yield _wider_mode(workflow, state, policy.permission_mode, given)
        for tool in policy.allowed_tools:
            if tool not in start.allowed_tools:
                yield _wider_tools(workflow, state, tool)


def _wider_mode(workflow: Workflow, state: State, asked: str, given: str) -> Diagnostic:
    mark = mark_of(workflow, state, ("permission_mode",))
    message = f"{state.name} asks for permission mode `{asked}`, but `{given}` was given"
    return frontmatter.diagnose(
        mark, "wider-permission", message, f"{pasted.flag('--permission-mode', asked, 'MODE')}, if you mean it"
    )


def _wider_tools(workflow: Workflow, state: State, asked: str) -> Diagnostic:
    mark = mark_of(workflow, state, ("allowed_tools",))
    flag = pasted.flag("--allow-tool", asked, "TOOL")
    message = f"{state.name} asks for the tool `{asked}`, which was not allowed"
    return frontmatter.diagnose(mark, "wider-permission", message, f"{flag}, if you mean it")


def wider_roots(proposal: Proposal) -> Iterator[Diagnostic]:
    """Every directory that the workflow wants to enter and that the person did not open."""
    start, workflow = proposal.start, proposal.loaded.workflow
    if proposal.roots is None or not workflow.settings.roots:
        return
    from raymond.steps import working_directory

    opened = working_directory.allowed(start.cwd, tuple(proposal.roots))
    for index, asked in enumerate(workflow.settings.roots):
        path = os.path.realpath(os.path.join(start.cwd, asked))
        if not working_directory.is_inside(path, opened):
            mark = workflow.marks.get(("roots", index)) or workflow.marks.get(("roots",)) or Mark(SETTINGS_FILE)
            message = f"the workflow wants to enter {path}, which was not opened to it"
            flag = pasted.flag("--root", path, "DIR")
            yield frontmatter.diagnose(mark, "wider-permission", message, f"{flag}, if you mean it")


def unheeded(proposal: Proposal) -> Iterator[Diagnostic]:
    """Every state that narrows rights which its backend ignores."""
    for state in proposal.prompts.values():
        backend = proposal.backend_of(state.name)
        can = proposal.able.get(backend)
        if can is None:
            continue
        for key, honoured in (
            ("permission_mode", can.permission_modes),
            ("allowed_tools", can.tool_rules),
            ("disallowed_tools", can.tool_rules),
        ):
            if not honoured and getattr(state.policy, key):
                message = f"{backend} ignores `{key}`, so {state.name} would get more rights than it asks for"
                mark = mark_of(proposal.loaded.workflow, state, (key,))
                yield frontmatter.diagnose(mark, "unheeded-right", message, "use another backend, or remove this key")
        mode = proposal.start.permission_mode
        if mode and not can.permission_modes and limits.MODE_RANKS[mode] < limits.MODE_RANKS[limits.DEFAULT_MODE]:
            message = (
                f"{backend} ignores the permission mode `{mode}`, so {state.name} would get more rights than you gave"
            )
            hint = "use another backend, or another mode"
            yield Diagnostic(id="unheeded-right", message=message, file=state.name, hint=hint)


def polluting(proposal: Proposal) -> Iterator[Diagnostic]:
    """Every call that would write into its caller's conversation."""
    named = {name: proposal.backend_of(name) for name in proposal.prompts}
    in_place = {name: backend for name, backend in named.items() if backend in proposal.start.in_place}
    if not in_place:
        return iter(())
    from raymond.language import lint

    return lint.polluting(proposal.loaded.workflow, in_place)


def without_model(proposal: Proposal) -> Iterator[Diagnostic]:
    """Every evaluator whose judge has no model: the default one of a program is rarely small."""
    workflow, start = proposal.loaded.workflow, proposal.start
    for state in workflow.states.values():
        judge, found = judges.of_state(workflow, state), state.policy.evaluator
        if found is None or not isinstance(judge, str) or not judge:
            continue
        backend = _judged_by(start, state.name, judge)
        if evaluators.lacks_model(start, backend, found, workflow.states[judge]):
            message = f"nobody says which model of {backend} judges {state.name}"
            hint = "name one: evaluator: {model: ...}, or small_model in workflow.yaml or in your settings"
            yield frontmatter.diagnose(mark_of(workflow, state, ("evaluator",)), "bad-value", message, hint)


CHECKS: tuple[Callable[[Proposal], Iterator[Diagnostic]], ...] = (
    wider,
    wider_roots,
    unheeded,
    polluting,
    without_model,
)
"""The checks made once the backends are known; all findings are reported together."""


# --- warnings


def start_warnings(loaded: Loaded, start: RunStarted) -> Iterator[Diagnostic]:
    """What can only be known with the backends, the files and the environment of a start."""
    replies = registry.replies_of(start, loaded.files)
    if replies:
        yield from replies.unknown([*loaded.workflow.states, *loaded.workflow.beside])
    yield from _effort_warnings(loaded.workflow, start)
    yield from environment_warnings(os.environ)
    if loaded.is_clean:
        return
    yield from script_warnings(loaded.workflow)
    if loaded.clean_by and program_cache.are_well(_scripts(loaded.workflow)):
        program_cache.remember_clean(loaded.clean_by)


def environment_warnings(environment: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Variables that were probably meant to be settings."""
    known = {name.upper() for name, row in KEYS.items() if not row.is_table}
    known |= {*_OWN_VARIABLES, *(name.upper() for name in BUILT_IN), MARK.removeprefix(config.PREFIX)}
    known |= {"WORKSPACE"} if MARK in environment else set()  # set for a step that works in one
    for variable in sorted(environment):
        name = variable.removeprefix(config.PREFIX)
        if not variable.startswith(config.PREFIX) or name in known or name.startswith("VAR_"):
            continue
        if row := {**OPTIONS, **KEYS}.get(name.lower()):
            way = f"use {row.flags[-1]}" if row.group else f"write `{row.name}` into config.toml"
            message = f"`{variable}` is not read"
            yield frontmatter.diagnose(Mark("the environment", source=variable), "unknown-setting", message, way)
            continue
        from difflib import get_close_matches

        if close := get_close_matches(name, known, 1, _SIMILARITY):
            message, hint = f"unknown setting `{variable}`", f"did you mean `{config.PREFIX}{close[0]}`?"
            yield frontmatter.diagnose(Mark("the environment", source=variable), "unknown-setting", message, hint)


def script_warnings(workflow: Workflow) -> Iterator[Diagnostic]:
    """What bash does not like about the scripts that the entry can lead to, and about those in lib/."""
    texts = _scripts(workflow)
    for name, said in program_cache.complaints(texts).items():
        for line, message in bash.places(said):
            mark = frontmatter.mark(name, texts[name], line, 1, 1000)
            yield frontmatter.diagnose(mark, "bash-syntax", f"bash: {message}", "`bash -n` says the same")


def _scripts(workflow: Workflow) -> dict[str, str]:
    named = reach.of(workflow).named
    texts = {name: state.body for name, state in workflow.states.items() if name.endswith(".sh") and name in named}
    lib = {name: text for name, text in workflow.lib.items() if name.endswith(".sh") and bash.is_for_bash(text)}
    return texts | {f"lib/{name}": text for name, text in lib.items()}


def _effort_warnings(workflow: Workflow, start: RunStarted) -> Iterator[Diagnostic]:
    hint = f"one of: {', '.join(EFFORTS)}"
    prompts = [state for _, state in sorted(workflow.states.items()) if state.kind == "prompt"]
    prompts = [state for state in prompts if state.name in reach.of(workflow).named]
    if prompts and start.effort and start.effort not in EFFORTS and start.backend in registry.PROGRAMS:
        mark = Mark("--effort", source=start.effort)
        yield frontmatter.diagnose(mark, "unknown-effort", f"{start.backend} knows no effort `{start.effort}`", hint)
    for state in prompts:
        backend = start.backends.get(state.name, start.backend)
        if backend in registry.PROGRAMS:
            for effort, mark in _efforts_of(workflow, state):
                if effort not in EFFORTS:
                    message = f"{backend} knows no effort `{effort}`"
                    yield frontmatter.diagnose(mark, "unknown-effort", message, hint)


def _efforts_of(workflow: Workflow, state: State) -> Iterator[tuple[str, Mark]]:
    if state.policy.effort:
        yield state.policy.effort, mark_of(workflow, state, ("effort",))
    for tag in reading.scan(state.body) if "effort=" in state.body else ():
        if (effort := tag.attributes.get("effort")) and tag.name == "function" and "{{" not in effort:
            from raymond.language.lint import places

            yield effort, places.attribute(state, tag, "effort")


def located(found: Iterable[Diagnostic], loaded: Loaded) -> list[Diagnostic]:
    """The findings with the paths of the author's files, as one would type them here."""
    return [loader.located(one, loaded.scope_dir) if one.file in loaded.files else one for one in found]


@contextmanager
def errors_located(loaded: Loaded) -> Iterator[None]:
    """Within it, an error in the author's files names them as one would type them here."""
    try:
        yield
    except WorkflowError as error:
        raise type(error)(*located(error.diagnostics, loaded)) from None


def refuse_warnings(found: list[Diagnostic]) -> None:
    """Refuse a start because of warnings: somebody asked for that."""
    if found:
        raise WorkflowError(*(replace(one, severity="error") for one in found))
