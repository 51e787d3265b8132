"""Which runs there are, and how each looks from outside."""

import contextlib
import os
from collections.abc import Iterator
from time import time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond.errors import JournalError
from raymond.faces import documents
from raymond.machine.agent import ASKING, RUNNING, WAITING, Whole
from raymond.machine.events import RunStarted
from raymond.machine.run import Run
from raymond.machine.schedule import wake_at
from raymond.store import blobs, journal, lock
from raymond.store import project as projects
from raymond.store.project import Project
from raymond.store.run_folder import SETTLED, RunFolder
from raymond.system.files import contents
from raymond.views import times
from raymond.views.status import DONE, UNFINISHED, group, is_answered, run_status
from raymond.views.status import RunRow as RunRow

INTERRUPTED = "interrupted"
"""The status of a run that should be running and that no process drives."""
ANSWERED = "answered"
"""The status of a run whose question was answered and that nobody has continued: its last process left in order."""
STOPPING = "stopping"
"""The status of a run that was stopped, until its running steps have ended."""

_SIGINT = 2
"""On every system; the module `signal` would only be imported for it."""


class Seen(Struct, frozen=True):
    """A run as it looks from outside."""

    run: Run
    status: str
    pid: int
    """The process that drives it; 0 when none does."""
    note: str = ""
    """Who else holds its lock, and how to get rid of that."""
    host: str = ""
    """The other machine whose process drove it last and did not release it, so that it may drive it still."""


def here() -> Project:
    """The project of the current directory."""
    return projects.at(os.getcwd())


def project_of(row: RunRow) -> Project:
    """The project of a row."""
    return Project(here().home, row.project)


# --- how it looks


def status_without_driver(status: str, *, is_due: bool = False, is_answered: bool = False) -> str:
    """The `status` of a run without a driver, as seen from outside: a run that needs one was interrupted.

    `is_due`: something in it has a time, for which its driver would have waited. `is_answered`: see views.status.
    """
    if status != "running" and not is_due:
        return status
    return ANSWERED if is_answered else INTERRUPTED


def look(project: Project, id: str) -> Seen:
    """Run `id` now: folded from its journal, and who drives it."""
    run = journal.read(project.run(id)).run
    holder = lock.holder(project.run(id))
    if isinstance(holder, lock.ForeignHolder):
        return Seen(run, undriven_status(run), 0, f"{holder.told(id)}\n{holder.way_out(id)}")
    if holder is None:
        host = lock.signed(project.run(id)).host
        return Seen(run, undriven_status(run), 0, host=host if host != os.uname().nodename else "")
    is_stopping = run.stop is not None and not run.final_status
    return Seen(run, STOPPING if is_stopping else run_status(run), holder.pid)


def may_have_left(project: Project, run: Run) -> bool:
    """Whether something says that processes of a run may still be there: what a driver removes when it leaves."""
    folder = project.run(run.start.workflow_id)
    return bool(run.statuses.get(RUNNING)) or any(
        map(os.path.exists, (folder.noted, folder.cgroups, folder.pids, folder.spool))
    )


def is_driven(folder: RunFolder) -> bool:
    """Whether a process drives the run now."""
    holder = lock.holder(folder)
    return holder is not None and not isinstance(holder, lock.ForeignHolder)


def has_ended(folder: RunFolder) -> bool:
    """Whether a run is known to be over without reading its journal; one that failed may still be resumed."""
    found = _kept_state(folder)
    return found is not None and found.is_over


def whole(project: Project, id: str) -> Whole:
    """Reads the long results of run `id`, which the run itself only refers to."""
    return blobs.whole(project.run(id).blobs)


def undriven_status(run: Run) -> str:
    """The status of a run that nobody drives any more."""
    is_due = not run.stop and not run.final_status and wake_at(run) is not None
    return status_without_driver(run_status(run), is_due=is_due, is_answered=is_answered(run))


def projects_of(*, every: bool) -> list[Project]:
    """This project, or all of this person; this one first if it is not known yet."""
    home = here()
    found = projects.known(home.home) if every else []
    return found if home in found else [home, *found]


def rows(*, every: bool = False) -> list[RunRow]:
    """The runs of this project, or of `every` project of this person, the latest first."""
    listed = [row(one, id) for one in projects_of(every=every) for id in one.ids()]
    return sorted(listed, key=lambda one: one.started_at or "", reverse=True)


def unreadable(*, every: bool) -> dict[str, str]:
    """The folders of projects, or that of this one, whose runs cannot be listed -> why."""
    home = here()
    return {root: why for root, why in projects.unreadable(home.home).items() if every or root == home.root}


def row(project: Project, id: str) -> RunRow:
    """Run `id` in one row: from its state file while that is as new as the journal, else from the journal."""
    folder = project.run(id)
    holder, touched = lock.holder(folder), 0.0
    driven = holder is not None and not isinstance(holder, lock.ForeignHolder)
    try:
        found = _kept_state(folder) or _state_of(journal.read(folder).run)
    except JournalError as error:
        with contextlib.suppress(OSError):  # it may be removed at this moment
            touched = os.stat(folder.journal if os.path.exists(folder.journal) else folder.path).st_mtime
        return RunRow(
            workflow_id=id,
            project=project.tree,
            status="unreadable",
            driven=driven,
            updated_at=times.instant(touched),
            error=str(error),
        )
    has_ended = found.is_over or found.status in ("failed", "cancelled")
    status = found.status
    if not driven:
        status = status_without_driver(status, is_due=found.due_at is not None, is_answered=found.is_answered)
    elif found.stop_kind is not None and not has_ended:
        status = STOPPING
    questions = 0 if has_ended else found.questions(time())
    aside = _set_aside(folder)
    reviews = (0 if has_ended else sum(bool(one.review) for one in found.agents)) + aside.count("\n")
    is_settled = has_ended and aside == SETTLED
    return RunRow(
        workflow_id=id,
        project=project.tree,
        driven=driven,
        pid=holder.pid if driven and holder else None,
        workflow=found.workflow,
        at="" if found.is_over else found.stands_at,
        is_over=found.is_over,
        exit_code=None if driven else UNFINISHED if status == INTERRUPTED else found.exit_code,
        status=status,
        group=DONE
        if is_settled
        else group(status, driven=driven, questions=questions, stop_kind=found.stop_kind, reviews=reviews),
        reason=found.reason or (_unheard(project, folder) or documents.GONE if status == INTERRUPTED else None),
        questions=questions,
        reviews=reviews,
        agents_failed=found.agents_failed,
        budget_usd=found.budget_usd,
        agents=found.agents_started,
        cost_usd=found.total_cost_usd,
        cost_is_estimated=found.cost_is_estimated,
        scripted_cost_usd=found.scripted_cost_usd,
        started_at=found.started_at,
        updated_at=found.updated_at,
    )


def _set_aside(folder: RunFolder) -> str:
    """The items of a loop that wait for a person, a line each; or that all are decided."""
    try:
        return contents(folder.set_aside).decode("utf-8", "replace")
    except OSError:
        return ""


def _unheard(project: Project, folder: RunFolder) -> str | None:
    """That a stop was left for a driver that died here; the journal is only read when something was left."""
    try:
        if not os.listdir(folder.inbox):
            return None
        from raymond.control import left_requests  # which knows all that can be asked, and takes long to import

        return left_requests.of(project, journal.read(folder).run).stop() or None
    except (OSError, JournalError):
        return None


class _AgentState(Struct):
    """What a row needs of an agent in a state file."""

    status: str
    id: str = ""
    label: str | None = None
    current_state: str = ""
    wake_at: str | None = None
    review: str | None = None


class _State(Struct):
    """What a row needs of a state file."""

    status: str
    agents_started: int
    total_cost_usd: float
    cost_is_estimated: bool
    started_at: str | None
    updated_at: str | None
    stop_kind: str | None
    agents_failed: int = 0
    scripted_cost_usd: float = 0.0
    due_at: str | None = None
    journal_bytes: int = 0
    reason: str | None = None
    budget_usd: float | None = None
    agents: list[_AgentState] = []
    workflow: str = ""
    is_over: bool = False
    exit_code: int | None = None
    is_answered: bool = False
    """Never in a state file: whoever drives the run writes that, and has read the answer."""

    @property
    def stands_at(self) -> str:
        """Where it is: the item of a loop, the state of a single agent, or how many there are."""
        labels = [one.label for one in self.agents if one.label and one.status != WAITING]
        busy = [one for one in self.agents if one.status != WAITING] or self.agents
        if len(busy) == 1:
            return labels[0] if labels else busy[0].current_state
        return f"{len(busy)} agents" if busy else ""

    def questions(self, now: float) -> int:
        """How many agents ask something that can still be answered."""
        asking = [one.wake_at for one in self.agents if one.status == ASKING]
        return sum(not at or times.moment(at) > now for at in asking)


def _state_of(run: Run) -> _State:
    """As it would be read from its state file."""
    return replace(msgspec.json.decode(documents.state_file(run), type=_State), is_answered=is_answered(run))


def _kept_state(folder: RunFolder) -> _State | None:
    try:
        journal_now = os.lstat(folder.journal)
        if journal_now.st_mtime_ns > os.lstat(folder.state).st_mtime_ns:
            return None
        found = msgspec.json.decode(contents(folder.state), type=_State)
        return found if found.journal_bytes == journal_now.st_size else None
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


# --- who stopped it


def was_shut_down(run: Run) -> bool:
    """Whether the machine stopped it: an orderly shutdown sends SIGTERM, but whoever types Ctrl-C means it."""
    stopped = run.stop
    return stopped is not None and stopped.kind == "signal" and not run.final_status and stopped.signal != _SIGINT


# --- others in the same directory


def neighbours(project: Project, start: RunStarted) -> list[str]:
    """The runs that a process drives in the directory of the run that began with `start`, above it or below it.

    Runs that steps start share the directory of their outer run on purpose.
    """
    if start.inside:
        return []
    return [id for id, other in _driven_elsewhere(project, start.workflow_id) if _overlaps(start.cwd, other.cwd)]


def _driven_elsewhere(project: Project, but: str) -> Iterator[tuple[str, RunStarted]]:
    for id in project.ids():
        folder = project.run(id)
        # Whoever leaves a run removes this file: most runs need no look at their lock.
        if id == but or not os.path.exists(folder.driver) or not is_driven(folder):
            continue
        try:
            other = journal.first(folder)
        except JournalError:
            continue
        if not other.inside:
            yield id, other


def _overlaps(one: str, other: str) -> bool:
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)
