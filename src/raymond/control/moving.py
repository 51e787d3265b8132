"""Let a run continue in the directory that its project was moved to."""

import os
from time import time

import msgspec

from raymond.backends import Carrier, registry
from raymond.control import arguments, config, drive
from raymond.errors import RunExists, UsageError
from raymond.machine.agent import Agent, rebased
from raymond.machine.events import RunMoved
from raymond.machine.run import Run
from raymond.store import journal, workflow_snapshot
from raymond.store import project as projects
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.system import files, git


def move(project: Project, id: str, directory: str, *, force: bool = False) -> tuple[Project, RunMoved]:
    """Let run `id` continue in `directory`: its folder goes to the project there, and its conversations with it."""
    given = _checked(directory)
    target = projects.at(given)
    held = drive.take_lock(project.run(id), force)
    try:
        folded = journal.read(project.run(id))
        tree = _trees(project.run(id)).get(folded.run.start.cwd, project.tree)
        moved = _moved(project, tree, target, folded.run, given)
        if target.tree != project.tree:
            _check_free(target, id)
            _note(project.run(id), folded.run.start.cwd, moved.cwd, tree)
            _move_folder(project, target, id)
        folder = target.run(id)
        held.follow(folder)
        book = journal.Journal(folder, folded.size, held)
        book.decide(folded.run, time(), journal.torn(folded))
        book.decide(folded.run, time(), [moved])
        book.close()
    finally:
        held.release()
    return target, moved


def _checked(directory: str) -> str:
    """The real path of a directory that a run can continue in."""
    given = os.path.realpath(directory)
    if not os.path.isdir(given):
        raise UsageError(f"--cd {directory}: there is no such directory", hint="name the directory to continue in")
    return arguments.check_path(given, "--cd: the path of this directory")


def _trees(folder: RunFolder) -> dict[str, str]:
    """Which project a run belonged to while it was in a directory.

    A run whose folder has moved and whose journal does not say so, because the move was cut short or the line was
    damaged, still belongs there: it continues where it would have continued the first time.
    """
    try:
        return msgspec.json.decode(files.contents(folder.moves, 1 << 20), type=dict[str, str])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}


def _note(folder: RunFolder, cwd: str, new: str, tree: str) -> None:
    """Keep the project that a run belongs to as long as its directory is `cwd`; nobody needs it if that stays."""
    if new != cwd:
        data = msgspec.json.encode(_trees(folder) | {cwd: tree})
        files.replace(folder.moves, data, durable=True, run=folder.id)


def _moved(project: Project, tree: str, target: Project, run: Run, given: str) -> RunMoved:
    """Where the run continues: for a whole project that was moved, at the same place in it; else where it was told."""
    old, new, cwd = run.start.cwd, given, given
    there = rebased(run.start.cwd, tree, target.tree)
    if given == target.tree and f"{there}/".startswith(f"{given.rstrip('/')}/") and os.path.isdir(there):
        old, new, cwd = tree, target.tree, there
    lost = _bring(project, target, run, old, new)
    return RunMoved(cwd=cwd, before=old, after=new, lost=lost, commit=git.head(target.tree))


def _check_free(target: Project, id: str) -> None:
    target.make()
    if target.run(id).exists:
        hint = "remove one of them"
        raise RunExists(f"{target.tree} has a run `{id}` of its own", path=target.run(id).path, hint=hint)


def _move_folder(project: Project, target: Project, id: str) -> None:
    """First the folder: killed after this, the run is where the next attempt looks for it."""
    try:
        os.rename(project.run(id).path, target.run(id).path)
        files.sync_folder(target.runs)
        files.sync_folder(project.runs)
    except OSError as error:
        raise files.trouble(target.run(id).path, error, run=id) from None


def _bring(project: Project, target: Project, run: Run, old: str, new: str) -> list[str]:
    """Bring every conversation along; those that could not be."""
    placed = workflow_snapshot.placed_workflow(project, run)
    backends = registry.make(project, run, placed, config.load(target.tree)["backends"])
    lost: list[str] = []
    for agent in run.agents.values():
        for backend, session, at in _conversations(run, agent):
            if not _carry(backends.get(backend), session, rebased(at, old, new)):
                lost.append(session)
    return lost


def _carry(backend: object, session: str, cwd: str) -> bool:
    """Most backends find a conversation from any directory."""
    return backend.carry(session, cwd) if isinstance(backend, Carrier) else True


def _conversations(run: Run, agent: Agent) -> list[tuple[str, str, str]]:
    """Backend, session and directory of everything an agent remembers."""
    found = [(agent.conversation, agent.cwd), *((frame.conversation, frame.cwd) for frame in agent.stack or ())]
    return [(one.backend, one.session, at or run.start.cwd) for one, at in found if one]


def fresh(run: Run, lost: list[str]) -> list[str]:
    """The agents that have lost a conversation."""
    return [agent.id for agent in run.agents.values() if any(one[1] in lost for one in _conversations(run, agent))]
