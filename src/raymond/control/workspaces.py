"""The workspace of a run: whether it can have one, its tree, and what becomes of the work."""

import os
from time import time
from typing import TYPE_CHECKING

from raymond.backends import guard, registry
from raymond.backends.registry import SCRIPTED, Tables
from raymond.errors import BackendError, UsageError
from raymond.language import judges, reach
from raymond.language.ways import Way, narrowed, widens
from raymond.language.workflow import Workflow
from raymond.machine.events import RunStarted
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.system import git
from raymond.workspace import ability, home, publish, tree
from raymond.workspace.place import Place

if TYPE_CHECKING:
    from raymond.workspace.apply import Done


def way_of(start: RunStarted, workflow: Workflow) -> Way:
    """The narrowest way in which a state of the run works."""
    found: Way = "here"
    for state in workflow.states.values():
        found = narrowed(found, narrowed(start.workspace, state.policy.workspace))
    return narrowed(found, start.workspace)


def check(project: Project, start: RunStarted, workflow: Workflow) -> None:
    """Refuse a run whose agents could not work where it says."""
    way = way_of(start, workflow)
    for state in workflow.states.values():
        own = state.policy.workspace
        if widens(start.workspace, own):
            hint = f"remove it there, or --workspace {own}"
            raise UsageError(f"{state.name} says `workspace: {own}`, and the run works {start.workspace}", hint=hint)
        if own and own != way and own != "here":
            raise UsageError(
                f"{state.name} says `workspace: {own}`, and others work {way}", hint="a run has one kind of workspace"
            )
        for one in state.policy.lend or ():
            if one not in start.lend:
                hint = "name it in workflow.yaml too, for the run: a state can only be lent less"
                raise UsageError(f"{state.name} is lent `{one}`, and its run is not", hint=hint)
    if way == "here":
        return
    if f"{project.home.path}/".startswith(f"{project.tree}/"):
        hint = "set RAYMOND_HOME to a folder elsewhere, or --workspace here"
        raise UsageError(f"the runs of this project are kept in it: {project.home.path}", hint=hint)
    if not start.loop and git.top(start.cwd) and publish.held(project.tree, f"refs/raymond/{start.workflow_id}/tip"):
        tip = f"refs/raymond/{start.workflow_id}/tip"
        raise UsageError(f"{tip} has the work of an earlier run", hint=f"take another --id, or git update-ref -d {tip}")
    home.check(start.lend)
    for state in workflow.states.values():
        backend = start.backends.get(state.name, start.backend)
        if state.kind == "prompt" and "off" in (start.net, state.policy.net) and backend in registry.PROGRAMS:
            hint = "let only scripts have `net: off`"
            raise UsageError(f"{state.name} has `net: off`, and {backend} needs the network", hint=hint)
    if way == "copy" and (start.net == "off" or any(one.policy.net == "off" for one in workflow.states.values())):
        raise UsageError("`net: off` needs --workspace isolated", hint="a copy uses the network as you do")
    tree.check(project.tree if git.top(start.cwd) else "", start.carry, copies=way == "copy")
    if way == "isolated":
        able = ability.probe(project.home.path)
        if able.problem:
            raise UsageError(f"steps cannot be isolated on this machine: {able.problem}", hint=able.hint)


def setup(project: Project) -> str:
    """The command that installs the project's packages again, by what made them; empty when that is not known."""
    from raymond.verifier import dependencies
    from raymond.workspace import carried

    folders = [os.path.relpath(one, project.tree) for one in git.untracked_folders(project.tree)]
    return dependencies.setup(project.tree, [one for one in folders if carried.is_installed(f"{project.tree}/{one}")])


def logins(start: RunStarted, workflow: Workflow, tables: Tables) -> list[str]:
    """What people should know of the logins that isolated agents are lent; refused where one cannot be lent."""
    possible = reach.of(workflow).possible
    states = [state for state in judges.answered(workflow) if state.name in possible]
    isolated = [state for state in states if narrowed(start.workspace, state.policy.workspace) == "isolated"]
    found = []
    for name in dict.fromkeys(start.backends.get(state.name, start.backend) for state in isolated):
        login = guard.login(None if name in SCRIPTED else registry.backend(name, tables))
        if login.problem:
            raise BackendError(login.problem, backend=name, hint=login.hint)
        found += [login.note] if login.note else []
    return found


def place_of(project: Project, run: Run, workflow: Workflow) -> Place | None:
    """Where the steps of a run work that do not work here; None when all of them do."""
    way = way_of(run.start, workflow)
    if way == "here":
        return None
    return at(project, run.start, way)


def at(project: Project, start: RunStarted, way: Way = "isolated") -> Place:
    """The workspace of a run, whether or not there is one. A loop makes its own commits of what counts."""
    id = start.workflow_id
    saves = "left" if start.loop else "tip"
    return Place(project.run(id).workspace, project.tree, id, project.home.path, way, saves=saves)


def describe(project: Project, run: Run) -> str:
    """Where the agents of a run with a workspace work, and how much room that takes; empty without one."""
    if run.tree is None and not run.start.loop:
        return ""
    place = at(project, run.start)
    if not place.is_there:
        return f"workspace: it went when the run ended; the work is in {place.tip}" if run.saved else ""
    way = place.known().way
    return f"workspace: {way}, {place.size() / (1 << 20):.1f} MB in {place.slot.at or place.slot.path}"


def find(project: Project, run: Run) -> Place:
    """The workspace of a run; refused when it has none."""
    start, id = run.start, run.start.workflow_id
    place = at(project, start)
    if run.tree is None and not (start.loop and place.is_there):
        hint = "its agents work in the project itself" if start.workspace == "here" else "it has not begun"
        raise UsageError(f"{id} has no workspace", hint=hint)
    return place


def apply(project: Project, run: Run) -> "tuple[Done, list[tuple[str, str]]]":
    """Bring the work of a run into the person's checkout: all of it, or nothing where something is in the way.

    Also what is not taken from the workspace, and why.
    """
    from raymond.workspace import apply as applying

    place = find(project, run)
    if not os.path.isdir(project.tree):
        id = run.start.workflow_id
        raise UsageError(f"{project.tree} is gone", hint=f"if it was moved: raymond resume {id} --cd .")
    commit, left_out = save(place) if place.is_there else (run.saved, [])
    if not commit or run.tree is None:
        return applying.Done([], 0, []), left_out
    return applying.apply(project.tree, run.start.workflow_id, run.tree.commit, commit), left_out


def save(place: Place) -> tuple[str, list[tuple[str, str]]]:
    """Put what is in the tree now under its reference; the commit, and what was not taken."""
    with place.alone():
        taken = place.harvest()
        return place.save(taken, f"raymond: {place.run}\n", round(time(), 3)), taken.left_out


def shell(project: Project, run: Run, agent: str) -> int:
    """Open a shell where an agent works; its exit code."""
    from raymond.workspace import home as homes

    place, id = find(project, run), run.start.workflow_id
    if not place.is_there:
        hint = f"git worktree add DIR {place.tip}" if run.saved else "it had changed nothing"
        raise UsageError(f"the workspace of {id} went when the run ended", hint=hint)
    known = run.agents.get(agent)
    if agent and known is None:
        raise UsageError(f"{id} has no agent `{agent}`", hint=f"raymond status {id} names them")
    start = run.start
    place.known()
    environment = dict(os.environb)
    shown = homes.lent(start.lend, environment)
    if place.way == "isolated":
        environment = homes.environment(environment, start.lend, ())
    program = os.environ.get("SHELL") or "/bin/sh"
    return place.call([program], known.cwd if known and known.cwd else start.cwd, environment, shown, start.net)
