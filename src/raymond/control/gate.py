"""The gates of a workflow: tried before the night, and their commands as tools that agents may use."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from raymond import durations
from raymond.control import preflight
from raymond.errors import Diagnostic, UsageError
from raymond.language.policy import Policy
from raymond.language.refusal import Refusal
from raymond.language.ways import Way, narrowed
from raymond.language.workflow import State, Workflow, resolve
from raymond.machine import gates
from raymond.machine.run import Run
from raymond.store import loader, workflow_snapshot
from raymond.store import project as projects
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system.stragglers import MARK, Marks
from raymond.verifier import rules, seal, twin
from raymond.verifier.assignment import Assignment, Found, Noted, Told, Work
from raymond.verifier.checks import environment_of
from raymond.verifier.gate import verify
from raymond.verifier.seal import Seal

_NAMED = 50
"""Sealed files that are named."""
_STEP = 1
"""The only step there is."""
_NONE = "put `gate: make test` at the top of a state"

ALLOW_FLAG = "--allow-gate-commands"


def gated(loaded: Loaded) -> list[State]:
    """The states with a gate."""
    return [state for state in loaded.workflow.states.values() if state.policy.gate]


def checked(loaded: Loaded) -> list[Diagnostic]:
    """What is doubtful about the commands of gates; a workflow that a run would refuse is refused here too."""
    with preflight.errors_located(loaded):
        found = preflight.check_workflow(loaded, "")
    return [one for one in found if one.id.startswith("gate-command-")]


def about(found: Sequence[Diagnostic], loaded: Loaded, states: Sequence[State]) -> list[Diagnostic]:
    """What was found that concerns these states."""
    others = loaded.workflow.states.keys() - {state.name for state in states}
    return preflight.located((one for one in found if one.file not in others), loaded)


def chosen(loaded: Loaded, name: str | None) -> list[State]:
    """The state that is called so, which must have a gate, or all that have one."""
    states = gated(loaded)
    if name is None:
        if not states:
            raise UsageError(f"no state of {loaded.workflow.name} has a gate", hint=_NONE)
        return states
    found = resolve(loaded.workflow, name)
    if isinstance(found, Refusal):
        raise UsageError(found.reason, hint=found.hint)
    policy = loaded.workflow.states[found].policy
    if not policy.gate and policy.has_gate:
        raise UsageError(
            f"the gate of {found} is known when an agent is there: {{{{{policy.late['gate']}}}}}",
            hint=f"try it with a value: raymond gate ... --set '{found}.gate=make test'",
        )
    if not policy.gate:
        names = ", ".join(one.name for one in states)
        raise UsageError(f"{found} has no gate", hint=f"these have one: {names}" if names else _NONE)
    return [loaded.workflow.states[found]]


class Where(Struct, frozen=True):
    """Where the agents of a run work, and with what."""

    way: Way = "here"
    carry: Sequence[str] = ()
    lend: Sequence[str] = ()
    net: str = ""
    setup: str = ""


def where_of(loaded: Loaded, way: Way | None) -> Where:
    """Where they would work in a run of this workflow that is started with that flag, or without."""
    settings = loaded.workflow.settings
    found = narrowed(way or settings.workspace, "")
    return Where(found, settings.carry, settings.lend, settings.net, settings.setup)


def try_out(state: State, where: Where, tell: Callable[[Told], None]) -> Found:
    """Run the gate of a state now, as a run would; whatever it started ends with it."""
    way = narrowed(where.way, state.policy.workspace)
    return _try_placed(state.policy, way, where, tell) if way != "here" else try_policy(state.policy, tell)


def _try_placed(policy: Policy, way: Way, where: Where, tell: Callable[[Told], None]) -> Found:
    """Run a gate where one of a run with a workspace would run: in a checkout of the project as it stands."""
    from raymond.control import workspaces
    from raymond.verifier import placed
    from raymond.workspace import publish, tree
    from raymond.workspace.place import Place

    project = projects.at(os.getcwd())
    tree.check(project.tree, list(where.carry), copies=way == "copy")
    project.home.make()
    run = f"gate-{os.urandom(4).hex()}"
    with tempfile.TemporaryDirectory(prefix=f"{run}-", dir=project.home.path) as folder:
        place = Place(f"{folder}/workspace", project.tree, run, project.home.path, way)
        lend = tuple(where.lend if policy.lend is None else policy.lend)
        net = "off" if "off" in (where.net, policy.net) else policy.net or where.net
        try:
            place.open(list(where.carry), lambda text: tell(Noted(text)), time.time())
            setup = where.setup or workspaces.setup(project)
            work = Work(place.folder, place.top, run, place.raymond, way, lend, net, setup)
            given = _assignment(policy, folder, run)
            return placed.trial(replace(given, work=work, cwd=os.getcwd()), work, tell)
        except OSError as error:
            return Found(verdict="could not start", reason=f"the check cannot be judged: {error}")
        finally:
            publish.drop(project.tree, f"refs/raymond/{run}/base")
            place.drop()


def try_policy(policy: Policy, tell: Callable[[Told], None], *, with_twin: bool = True) -> Found:
    """Run a gate that is in no state here; what is sealed is told first. `with_twin`: also how long a twin takes."""
    key = f"gate-{os.urandom(8).hex()}"
    marks = Marks(key, "")
    with tempfile.TemporaryDirectory(prefix="raymond-gate-") as folder:
        given = _assignment(policy, folder, key)
        try:
            try:
                sealed = _seal(given, tell)
            except OSError as error:
                why = f"what decides the check cannot be sealed: {error.strerror or error}"
                return Found(verdict="could not start", reason=why)
            found = verify(replace(given, sealed=_STEP), tell)
            if found.verdict == "passed" and with_twin:
                _twin(given, sealed, tell)
            return found
        finally:
            marks.end()


def _assignment(policy: Policy, folder: str, key: str) -> Assignment:
    more = {**policy.gate_env, MARK: Marks(key, "").of(_STEP)}
    return Assignment(
        checks=policy.gate,
        timeout=policy.gate_timeout or gates.TIMEOUT,
        reruns=gates.RERUNS if policy.gate_reruns is None else policy.gate_reruns,
        environment=environment_of(os.environ, more, os.path.join(folder, "caches")),
        key=key,
        step=_STEP,
        folder=os.path.join(folder, "seals"),
        seal=policy.seal,
        unseal=policy.unseal,
    )


def _seal(given: Assignment, tell: Callable[[Told], None]) -> Seal:
    began = time.monotonic()
    sealed = seal.seal_here(given, os.getcwd())
    for pattern in given.seal:
        if not any(map(rules.matcher([pattern]), sealed.entries)):
            tell(Noted(f"`seal: {pattern}` matches nothing here now"))
    took, count = durations.brief(time.monotonic() - began), len(sealed.entries)
    if count:
        tell(Noted(f"sealed {count:,} {'file' if count == 1 else 'files'} in {took}: {', '.join(_names(sealed))}"))
    else:
        tell(Noted("nothing is sealed: Raymond knows of no file that decides this check; name some with `seal`"))
    return sealed


def _names(sealed: Seal) -> list[str]:
    """The sealed files, as many as a person reads."""
    names = sorted(sealed.entries)
    return [*names[:_NAMED], *([f"and {len(names) - _NAMED:,} more"] if len(names) > _NAMED else [])]


def _twin(given: Assignment, sealed: Seal, tell: Callable[[Told], None]) -> None:
    """Make a twin for nothing: a night may need one."""
    began = time.monotonic()
    try:
        with twin.twin_of(sealed, [], os.path.join(given.folder, "try")):
            tell(Noted(f"a twin of this directory takes {durations.brief(time.monotonic() - began)}"))
    except OSError as error:
        tell(Noted(f"no twin can be made here, so a person is asked if a sealed file changes: {error.strerror}"))


# --- their commands as tools


def tool_patterns(workflow: Workflow) -> list[str]:
    """The patterns that allow the commands of its gates, each once."""
    found: dict[str, None] = {}
    for state in workflow.states.values():
        for check in state.policy.gate:
            found[tool_pattern(check.run.strip(), state.name)] = None
    if not found:
        raise UsageError(f"{ALLOW_FLAG}: no state of {workflow.name} has a gate", hint=f"leave out {ALLOW_FLAG}")
    return list(found)


def tool_patterns_of_run(project: Project, run: Run) -> list[str]:
    """The same for the files that a run has now."""
    start = run.start
    files = workflow_snapshot.read(project.run(start.workflow_id), start.source)
    return tool_patterns(loader.from_files(files, name=start.name, entry=start.entry, overrides=start.overrides))


def tool_pattern(command: str, state: str) -> str:
    """The pattern that allows exactly this command."""
    wide = re.search(r"[*\\]|[\x00-\x1f]", command)
    if wide:
        what = "a line break" if wide[0] == "\n" else f"`{wide[0]}`" if wide[0].isprintable() else "a control character"
        raise UsageError(
            f"{ALLOW_FLAG}: a pattern with {what} would allow more than the gate of {state}",
            hint=f"put the command into a file, as in `gate: ./check.sh`; or leave out {ALLOW_FLAG}",
        )
    escaped = re.sub(r"([()])", r"\\\1", command)
    return f"Bash({escaped})"
