"""Start a loop, resume one that was cut off, or look at it."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from time import time
from typing import Any

from msgspec import Struct

from raymond.backends.contract import NO_ACCOUNT
from raymond.control import gate_tools, runs
from raymond.control import start as starts
from raymond.control.handle import RunHandle
from raymond.control.start import Choices
from raymond.errors import BackendError, UsageError
from raymond.loops import documents, ending, opening, unended
from raymond.loops.documents import LOGS, STATES, Documents
from raymond.loops.formats import foreign_text, state_file
from raymond.loops.loop_run import LoopRun
from raymond.loops.opening import Place
from raymond.loops.settings import BRACES, RALPH, SESSION, STORIES, TASKS, VARIABLE, Settings
from raymond.loops.wishes import STOP
from raymond.machine.agent import SCRIPTED
from raymond.machine.evaluators import SMALL
from raymond.store import project as projects
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system import git
from raymond.system.files import make_private, private
from raymond.system.files import replace as write_file

WORKFLOW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session")
"""The workflow of the loops over items."""
PLAIN = os.path.join(os.path.dirname(WORKFLOW), "ralph")
"""The workflow of the plain loop."""


DENIED = (
    *("Bash(git push --force:*)", "Bash(git push -f:*)", "Bash(git push --mirror:*)", "Bash(git push --delete:*)"),
    *("Bash(git push * --force*)", "Bash(git push * -f)", "Bash(git push * --mirror*)", "Bash(git push * +*)"),
    *("Bash(git reset --hard:*)", "Bash(git clean -f:*)", "Bash(git clean -fd:*)", "Bash(git clean -fdx:*)"),
    *(f"Edit(**/{name})" for name in STATES.values()),
)
"""What agents of a loop may not do, where their program can be told so."""
_OF_ITEMS = ("FAILED.py", "WORK.md", "PAUSE.py", "CHECK.py", "MANUAL.py")
_NEEDED = {
    RALPH: ("BEFORE.py",),
    SESSION: _OF_ITEMS,
    TASKS: _OF_ITEMS,
    STORIES: (*_OF_ITEMS, "PLAN.md", "PLANNED.py"),
}
"""The states that a workflow has to have: the loop itself sends agents there."""
_NO_ACCOUNT = "without an account: --replies FILE, e.g. with `WORK: ITERATION_COMPLETE`"


class Found(Struct, frozen=True):
    """A loop that a state file tells of."""

    status: str
    session: int
    most: int
    state: dict[str, Any]
    loop: LoopRun | None
    """None when its journal is not here."""
    is_driven: bool = False
    is_unconcluded: bool = False
    """Its run has ended, and nobody has written that down."""
    is_elsewhere: bool = False
    """Its process may run on another host."""


def look(project: Project, found: Documents, loop: str) -> Found | None:
    """The loop that the state file of this directory tells of, or the journal alone; a broken file is kept aside."""
    path = found.state(loop)
    try:
        text = documents.beginning(path)
        given = state_file.read(text) if text else {}
    except state_file.Broken:
        os.replace(path, f"{path}.broken")
        given = {}
    there = _named(project, found, str(given.get("workflow_id") or "")) if given else None
    if not given.get("workflow_id"):
        there = next(unended.every(project, loop, found), None)
    if not given and not there and not os.path.isdir(found.folder):  # the plain loop works without it
        there = last(project, found, loop)
    if not given and there is None:
        return None
    status = str(given.get("status") or "running")
    if there and there.run.is_over:
        status = ending.status_of(there)
    elif there and there.is_stopping and status == "running":  # no state file says so where there is no folder docs
        status = "stopping"
    elif there and not given and runs.left(there.run) != runs.INTERRUPTED:
        status = "paused"
    host = given.get("host")
    return Found(
        status=status,
        session=_first(given, "currentSession", "currentIteration") or (there.ledger.sessions if there else 0),
        most=_first(given, "maxSessions", "maxIterations", "maxStories") or (there.settings.most if there else 0),
        state=given,
        loop=there,
        is_driven=there is not None and runs.is_driven(project.run(there.id)),
        is_unconcluded=there is not None and there.run.is_over and given.get("status") in ("running", "stopping"),
        is_elsewhere=there is None and bool(host) and host != os.uname().nodename,
    )


def own(found: Found | None) -> str:
    """The id of the loop that was found and can go on; empty when there is none."""
    return found.loop.id if found and found.loop else ""


def _first(given: dict[str, Any], *names: str) -> int:
    """The first of these numbers that a state file has."""
    value = next((given[name] for name in names if name in given), 0)
    return value if isinstance(value, int) else 0


def _named(project: Project, found: Documents, id: str) -> LoopRun | None:
    """The loop that a state file names, if it works here: a copy of the folder has a copy of the file."""
    there = unended.run(project, id)
    return there if there and unended.is_of(there, found) else None


def last(project: Project, found: Documents, loop: str) -> LoopRun | None:
    """The last such loop with these documents, whether it has ended or not."""
    every = (unended.run(project, id) for id in unended.ids(project, loop))
    return next((one for one in every if one and unended.is_of(one, found)), None)


def every(project: Project, loop: str, most: int) -> Iterator[LoopRun]:
    """The last runs of this project that are such a loop."""
    for id in islice(unended.ids(project, loop), most):
        if there := unended.run(project, id):
            yield there


def lost_log(place: Place, project: Project) -> tuple[str, str]:
    """The session log of the last commit that a journal here knows, if it is gone: its name, and what it said.

    A commit alone could be anybody's: whoever wrote it would write the queue.
    """
    commit, message = place.repository.last_with("Raymond-Item")
    id = next((line[13:] for line in git.lines(message) if line.startswith("Raymond-Run: ")), "")
    loop = unended.run(project, id)
    entry = next((one for one in loop.ledger.entries if one.commit == commit), None) if loop else None
    name = os.path.basename(entry.log) if entry else ""
    if not name or os.path.lexists(place.documents.path(LOGS, name)):
        return "", ""
    found = place.repository.file(commit, os.path.join(place.documents.inside, LOGS, name))
    return ("", "") if found is None else (name, found.decode("utf-8", "surrogateescape"))


def archive(found: Documents, loop: str) -> str:
    """Put the state file of a loop aside, with the time; its new name."""
    path = found.state(loop)
    if not os.path.lexists(path):
        return ""
    base = f"{path}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    name, number = base, 1
    while os.path.lexists(name):
        number += 1
        name = f"{base}_{number}"
    os.replace(path, name)
    return os.path.basename(name)


_LOCK = "loop.lock"
"""In the folder of a project: held while a loop starts or runs there."""
_held: dict[str, int] = {}
"""The locks that this process holds: folder of the project -> descriptor."""


def check_alone(project: Project, own: str = "") -> None:
    """Refuse a second loop on the same checkout while the first lives, whichever of them it is, but for `own`.

    The lock is held for as long as this process lives, or one that goes on in the background for it.
    """
    for id in project.ids():
        folder = project.run(id)
        if id == own or not runs.is_driven(folder):
            continue
        if unended.is_loop(project, id) and (there := unended.run(project, id)):
            shows, stops = unended.command(there, "status"), unended.command(there, "stop")
            hint = f"{shows} shows it, {stops} ends it after the item it is at"
            raise UsageError(f"a {there.loop} is running here: {id}", hint=hint)
    if project.root in _held:
        return
    make_private(project.root)
    fd = private(os.path.join(project.root, _LOCK), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise UsageError("another loop starts or runs on this checkout", hint="raymond list shows it") from None
    _held[project.root] = fd


def check_open(project: Project, own: str = "") -> None:
    """Refuse what changes files while an item of a loop is open on this checkout, though nobody drives that loop now.

    It would be taken for the work of the agent of that item. The loop `own` is the one that goes on; journals name
    the others, because a state file tells of one folder of documents, and anybody can remove it.
    """
    for there in unended.every(project):
        if there.id == own or not there.ledger.open:
            continue
        if there.loop == RALPH and there.settings.commit == "never":
            continue  # nothing is compared when it goes on
        ends = f"raymond cancel {there.id} ends the loop"
        title = foreign_text.cut(there.ledger.open.get("title", ""), 100)
        hint = f"{unended.command(there, 'resume')} goes on with it, {ends}"
        raise UsageError(f"{there.id} was cut off in the middle of an item: {title}", hint=hint)


def let_go(project: Project) -> None:
    """Leave the checkout to others, but for a process that was started meanwhile: it holds the lock with us."""
    if (fd := _held.pop(project.root, None)) is not None:
        os.close(fd)


def new_id(name: str, asked: str = "") -> str:
    """The id of a new run."""
    return asked or f"{name}-{os.urandom(4).hex()}"


def load(workflow: str, choices: Choices, checks: Sequence[str], loop: str) -> Loaded:
    """The workflow of a loop, with what its agents may and may not do; refused when no run could begin with it."""
    if choices.allow_gate_commands:
        allowed = [gate_tools.pattern(one, "the loop") for one in dict.fromkeys(checks)]
        choices.allowed_tools = [*(choices.allowed_tools or []), *allowed]
        choices.allow_gate_commands = False
    if choices.backend in ("", "claude") and not choices.replies:
        for state in ("WORK.md", "REJECTED.md"):
            denied = {"disallowed_tools": list(DENIED), **choices.overrides.get(state, {})}
            choices.overrides = {**choices.overrides, state: denied}
    loaded = starts.load(workflow, choices.overrides)
    if workflow == WORKFLOW:  # it ships for several
        loaded.workflow.name = loop
    missing = next((one for one in _NEEDED[loop] if one not in loaded.workflow.states), "")
    if missing:
        hint = f"raymond {loop} eject DIR makes one"
        raise UsageError(f"{workflow} is not a workflow of {loop}: it has no {missing}", hint=hint)
    try:
        starts.prepare(loaded, choices)
    except BackendError as error:
        error.hint = error.hint.replace(NO_ACCOUNT, _NO_ACCOUNT)
        raise
    return loaded


def check_judge(settings: Settings, choices: Choices) -> None:
    """Refuse a goal for which nobody has named a judge: the default model of a program is rarely small."""
    backend, is_played = choices.backend or "claude", choices.replies and not choices.backend_was_typed
    if settings.goal and not is_played and not choices.small_model and backend not in (*SMALL, *SCRIPTED):
        hint = 'name one in ~/.config/raymond/config.toml: small_model = "NAME"'
        raise UsageError(f"--goal is judged by a small model, and nobody says which one of {backend}", hint=hint)


def begin(loaded: Loaded, choices: Choices, settings: Settings) -> RunHandle:
    """Write the first decision of the loop's run."""
    choices.variables = {**choices.variables, VARIABLE: settings.write(), BRACES: "{{"}
    choices.loop = settings.loop
    return starts.begin_here(loaded, choices)


def place_here(docs: str, *, needs_git: bool = True, has_plans: bool = False) -> Place:
    """Where a loop works; before it has a run, its trees are made in the folder of the project."""
    index = os.path.join(projects.at(os.getcwd()).root, "loop-index")
    return opening.place(docs, index, needs_git=needs_git, has_plans=has_plans)


def stop(loop: LoopRun) -> None:
    """Let the loop end after the item it is at."""
    write_file(loop.file(STOP), b"")
    if loop.loop == RALPH and not os.path.isdir(loop.documents.folder):
        return
    path = loop.documents.state(loop.loop)
    try:
        before = state_file.read(documents.beginning(path) or "{}")
    except state_file.Broken:
        before = {}
    known = {"status": "stopping", "lastUpdated": f"{datetime.fromtimestamp(time(), UTC):%Y-%m-%dT%H:%M:%SZ}"}
    documents.write(path, state_file.write(known, before))


def go_on(loop: LoopRun) -> None:
    """Forget that it was asked to stop."""
    if os.path.exists(loop.file(STOP)):
        os.unlink(loop.file(STOP))


def check_new(id: str) -> None:
    """Refuse an id with which no run can begin."""
    if not id.replace("-", "").replace("_", "").isalnum() or len(id) > 100:
        raise UsageError(f"`{id}` is not a valid id", hint="use up to 100 letters, digits, _ and -")
