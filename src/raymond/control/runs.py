"""Which runs there are, which one a name means, and how each looks from outside."""

import os
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from raymond.errors import JournalError, RunNotFound, UsageError
from raymond.faces import documents
from raymond.machine.agent import RUNNING
from raymond.machine.outcome import Whole
from raymond.machine.run import Run
from raymond.machine.schedule import wake_at
from raymond.store import blobs, exports, journal, lock
from raymond.store import project as projects
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.system import git
from raymond.system.files import contents
from raymond.views.status import run_status

INTERRUPTED = "interrupted"
"""The status of a run that should be running and that no process drives."""


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in one row of `list`; its JSON is the row of `list --json`."""

    workflow_id: str
    project: str
    status: str
    driven: bool
    agents: int = 0
    agents_failed: int = 0
    cost_usd: float = 0.0
    cost_is_estimated: bool = False
    started_at: str | None = None
    updated_at: str | None = None
    error: str | None = None
    """Why it cannot be read; its status is then `unreadable`."""


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


# --- which run


def here() -> Project:
    """The project of the current directory."""
    return projects.at(os.getcwd())


def named(given: str, *, changes: bool = False) -> tuple[Project, str]:
    """The run `given` names: one of this project, else of any. Without a name it is the latest of this project.

    A whole id comes before the beginning of one. To be changed, a run of another project must be named in full, and one
    without a name must be the only live one.
    """
    home = here()
    if given:
        return _named(home, given, changes)
    ids = home.ids()
    if not ids:
        raise nothing_in(home)
    if changes and len(ids) > 1:
        live = [id for id in ids if _is_live(home, id)]
        if len(live) > 1:
            raise UsageError(f"{len(live)} runs are live", hint=f"say which: {', '.join(live[:5])}")
        return home, live[0] if live else ids[0]
    return home, ids[0]


def _named(home: Project, given: str, changes: bool) -> tuple[Project, str]:
    projects.check_id(given)
    if home.run(given).exists:
        return home, given
    others = [project for project in projects.known(home.home) if project.tree != home.tree]
    found = [(project, given) for project in others if project.run(given).exists]
    if len(found) > 1:
        hint = f"raymond -C DIR ..., with one of: {_list(project.tree for project, _ in found)}"
        raise UsageError(f"`{given}` is a run of {len(found)} other projects", hint=hint)
    if found:
        return found[0]
    try:
        return home, home.resolve(given)
    except RunNotFound as unknown:
        return _begins(home, others, given, changes, unknown)


def _begins(
    home: Project, others: list[Project], given: str, changes: bool, unknown: RunNotFound
) -> tuple[Project, str]:
    """The run of another project whose id begins like this."""
    found = [(project, id) for project in others for id in project.ids() if id.startswith(given)]
    in_full = f"in full: {_list(f'{id} ({project.tree})' for project, id in found)}"
    if len(found) > 1:
        raise UsageError(f"`{given}` matches {len(found)} runs of other projects", hint=in_full)
    if found and changes:
        raise UsageError(f"`{given}` is a run of another project, to be changed by its full id", hint=in_full)
    if found:
        return found[0]
    if given in _waiting(home):
        hint = f"raymond adopt {given} takes it over"
        raise RunNotFound(f"`{given}` was kept in .raymond by an earlier release", hint=hint)
    raise unknown


def _list(texts: Iterable[str]) -> str:
    some = list(texts)
    return ", ".join(some[:5]) + (", ..." if len(some) > 5 else "")


def _waiting(home: Project) -> list[str]:
    """The runs that an earlier release left in the project, or here."""
    from raymond.store import earlier

    return [*earlier.ids(home.tree), *earlier.ids(os.getcwd())]


def nothing_in(home: Project) -> RunNotFound:
    """The error for a project without runs: why there are none, and where there may be some."""
    waiting, before = _waiting(home), _moved_from(home)
    if waiting:
        hint = f"an earlier release kept runs in .raymond ({_list(waiting)}): raymond adopt takes them over"
    elif before:
        hint = f"this looks like {before}, moved: raymond resume ID --cd . continues a run of it here"
    else:
        hint = "raymond run PATH starts one; raymond list --all shows the runs of all projects"
    return RunNotFound("no run has been started here yet", hint=hint)


def _moved_from(home: Project) -> str:
    """The directory, now gone, that this repository seems to have had; empty when there is none."""
    root = git.root_commit(home.tree)
    for project in projects.known(home.home) if root else ():
        about = project.about()
        if about and about.root_commit == root and not os.path.exists(project.tree):
            return project.tree
    return ""


def _is_live(project: Project, id: str) -> bool:
    try:
        return not journal.read(project.run(id)).run.final_status
    except JournalError:
        return False  # an unreadable run does not count; naming it shows what is wrong


def may_have_earlier(home: Project) -> bool:
    """Whether it is worth a look: an earlier release left something like a run in the project, or here."""
    return exports.has_former_journals(home.tree) or exports.has_former_journals(".")


# --- how it looks


def status_of(status: str, *, driven: bool, is_due: bool = False) -> str:
    """A run's own `status` as seen from outside: one that should be driven and is not was interrupted.

    `is_due`: something in it has a time, for which its driver would have waited.
    """
    return INTERRUPTED if (status == "running" or is_due) and not driven else status


def _is_due(run: Run) -> bool:
    return not run.stop and not run.final_status and wake_at(run) is not None


def look(project: Project, id: str) -> Seen:
    """Run `id` now: folded from its journal, and who drives it."""
    run = journal.read(project.run(id)).run
    holder = lock.holder(project.run(id))
    if isinstance(holder, lock.Squatter):
        return Seen(run, left(run), 0, f"{holder.told(id)}\n{holder.way_out(id)}")
    host = "" if holder else lock.signed(project.run(id)).host
    status = status_of(run_status(run), driven=holder is not None, is_due=_is_due(run))
    return Seen(run, status, holder.pid if holder else 0, host=host if host != os.uname().nodename else "")


def may_have_left(project: Project, run: Run) -> bool:
    """Whether something says that processes of a run may still be there: what a driver removes when it leaves."""
    folder = project.run(run.start.workflow_id)
    return bool(run.statuses.get(RUNNING)) or any(
        map(os.path.exists, (folder.noted, folder.cgroups, folder.pids, folder.spool))
    )


def _is_driven(folder: RunFolder) -> bool:
    holder = lock.holder(folder)
    return holder is not None and not isinstance(holder, lock.Squatter)


def whole(project: Project, id: str) -> Whole:
    """Reads the long results of run `id`, which the run itself only refers to."""
    return blobs.whole(project.run(id).blobs)


def left(run: Run) -> str:
    """The status of a run that nobody drives any more."""
    return status_of(run_status(run), driven=False, is_due=_is_due(run))


def rows(*, every: bool = False) -> list[RunRow]:
    """The runs of this project, or of `every` project of this person, the latest first."""
    home = here()
    found = projects.known(home.home) if every else []
    if home not in found:
        found.insert(0, home)
    listed = [row(one, id) for one in found for id in one.ids()]
    return sorted(listed, key=lambda one: one.started_at or "", reverse=True)


def row(project: Project, id: str) -> RunRow:
    """Run `id` in one row: from its state file while that is as new as the journal, else from the journal."""
    folder = project.run(id)
    driven = _is_driven(folder)
    try:
        found = _kept(folder) or _told(journal.read(folder).run)
    except JournalError as error:
        return RunRow(workflow_id=id, project=project.tree, status="unreadable", driven=driven, error=str(error))
    return RunRow(
        workflow_id=id,
        project=project.tree,
        driven=driven,
        status=status_of(found.status, driven=driven, is_due=found.due_at is not None),
        agents=found.agents_started,
        agents_failed=found.agents_failed,
        cost_usd=found.total_cost_usd,
        cost_is_estimated=found.cost_is_estimated,
        started_at=found.started_at,
        updated_at=found.updated_at,
    )


class _State(Struct):
    """What a row needs of a state file."""

    status: str
    agents_started: int
    total_cost_usd: float
    cost_is_estimated: bool
    started_at: str | None
    updated_at: str | None
    agents_failed: int = 0
    due_at: str | None = None
    journal_bytes: int = 0


def _told(run: Run) -> _State:
    return msgspec.convert(documents.about(run), _State)


def _kept(folder: RunFolder) -> _State | None:
    try:
        journal_now = os.lstat(folder.journal)
        if journal_now.st_mtime_ns > os.lstat(folder.state).st_mtime_ns:
            return None
        found = msgspec.json.decode(contents(folder.state), type=_State)
        return found if found.journal_bytes == journal_now.st_size else None
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


# --- which ones to resume after the machine died


def resumable(project: Project) -> Iterator[str | JournalError]:
    """The runs that were driven when the machine or their driver died, oldest first; what cannot be read, as error."""
    for id in reversed(project.ids()):
        try:
            seen = look(project, id)
        except JournalError as error:
            yield error
            continue
        if _is_driven(project.run(id)) or _belongs_to_step(seen.run):
            continue
        if seen.status == INTERRUPTED or was_shut_down(seen.run):
            yield id


def _belongs_to_step(run: Run) -> bool:
    """Whether a step of another run waits for it: that step is repeated, and starts it again."""
    return bool(run.start.inside) and not run.start.apart


def was_shut_down(run: Run) -> bool:
    """Whether the machine stopped it: an orderly shutdown sends SIGTERM, but whoever types Ctrl-C means it.

    Journals of earlier releases do not name the signal: such a run is left to its owner.
    """
    stopped = run.stop
    return (
        stopped is not None and stopped.kind == "signal" and not run.final_status and stopped.signal not in (0, _SIGINT)
    )


_SIGINT = 2
"""On every system; the module `signal` would only be imported for it."""
