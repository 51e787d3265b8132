"""Which run or agent a name means, and which run is meant without a name."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import time as now

from raymond import durations
from raymond.control import runs
from raymond.control.runs import RunRow, here
from raymond.errors import Error, RunNotFound, UsageError
from raymond.faces import table
from raymond.faces.table import Column
from raymond.store import journal
from raymond.store import project as projects
from raymond.store.project import Project
from raymond.system import git
from raymond.views import questions, times
from raymond.views.questions import AgentNames

SHOWN = 10
"""Candidates that are shown."""
COLUMNS = (
    Column(least=8),
    Column(rank=3),
    Column(right=True, rank=4),
    Column(least=17, rank=2, prose=True),
    Column(least=10, rank=1),
)
_WHOLE = ("cancel", "clean")
"""What cannot be undone: a run of another project has to be named in full for it."""
_LIKE = 0.5
"""How much of a name an id shares that may be meant: from 0 to 1, where it is the same."""
_ALL = "`raymond list --all` shows the runs of all projects"
_RUNNING = ("stop", "attach", "wait")
"""Commands that are about what runs now: the latest run is not meant when it has ended."""

_AGENTS_SHOWN = 20
"""Agents that are named to somebody who named none of them."""


class SeveralRuns(UsageError):
    """Several runs match; a person on a terminal can choose."""

    def __init__(
        self,
        message: str,
        candidates: Sequence[RunRow],
        *,
        given: str = "",
        way: str = "say which",
        first: str = "",
        command: Callable[[RunRow], str] | None = None,
    ) -> None:
        more = [f"... and {len(candidates) - SHOWN} more: raymond list --all"] if candidates[SHOWN:] else []
        shown = candidates[:SHOWN]
        rows = [
            (command(row) if command else row.workflow_id, *others)
            for row, (_, *others) in zip(shown, cells(shown), strict=True)
        ]
        listed = (f"  {line}" for line in (*table.lines(COLUMNS, rows), *more))
        self.lines = (*([first] if first else []), f"{way}:", *listed)
        super().__init__(message, hint="\n".join(self.lines))
        self.candidates = candidates
        self.given = given
        """The name that fits all of them; empty when none was given."""
        self._way, self._first = way, first

    def spelled(self, command: Callable[[RunRow], str]) -> "SeveralRuns":
        """The same with the command for each run in place of its id."""
        way, first = self._way, self._first
        return SeveralRuns(str(self), self.candidates, given=self.given, way=way, first=first, command=command)


def cells(rows: Sequence[RunRow]) -> list[tuple[str, ...]]:
    """What tells candidates apart: what became of each, how long ago it began, why, and where unless that is here."""
    from raymond.faces.listing import why

    place = here().tree
    shown = any(row.project != place for row in rows)
    return [(row.workflow_id, row.status, _age(row), why(row), row.project if shown else "") for row in rows]


def _age(row: RunRow) -> str:
    started = times.moment(row.started_at)
    return durations.brief(max(0.0, now() - started)) if started else ""


def _is_unfinished(row: RunRow) -> bool:
    return not row.is_over and row.status not in ("failed", "unreadable")


def _can_change(row: RunRow) -> bool:
    return not row.is_over and row.status != "unreadable"


_ACTS: dict[str, tuple[Callable[[RunRow], bool], ...]] = {
    "stop": (lambda row: _is_unfinished(row) and (row.driven or row.status != "stopped"),),
    "cancel": (_is_unfinished, lambda row: row.status == "failed" and not row.driven and not row.is_over),
    "resume": (lambda row: _can_change(row) and not row.driven,),
    "change": (_can_change,),
    "answer": (lambda row: row.questions > 0,),
    "review": (lambda row: row.reviews > 0,),
    "attach": (lambda row: row.driven, lambda row: row.questions > 0),
    "wait": (lambda row: row.driven,),
}
"""What a command can act on; what comes first is looked for first.

A resume retries what failed, and costs: whichever run it could mean counts. "change" is a resume that moves an agent or
raises a limit, which also a run that is running takes.
"""


def named(given: str | None = None, *, changes: bool = False, verb: str = "") -> tuple[Project, str]:
    """The run that `given` is the id of, or the beginning of one: a run of this project, else of any.

    A whole id comes before the beginning of one. Without a name it is the only run here that `verb` can act on; if it
    only looks, the latest, and also where there is none, unless it is about what runs now. Where no run was started,
    none is meant: a person may choose one.
    """
    home = here()
    if given is not None:
        return _named(home, given, verb)
    ids = home.ids()
    if not ids:
        raise _elsewhere(home, verb, changes)
    rows = [runs.row(home, id) for id in ids] if len(ids) > 1 or verb in _RUNNING else []
    found = _actable(rows, verb, changes)
    if len(found) > 1:
        # Who chooses anyway may choose what was not looked for first.
        offered = [row for row in rows if row in found or any(can(row) for can in _ACTS.get(verb, ()))]
        raise SeveralRuns(f"{len(offered)} runs match", offered)
    unreadable = [row for row in rows if row.status == "unreadable"]
    if found and unreadable:
        what = f"{found[0].workflow_id} may not be the only one: {_list(row.workflow_id for row in unreadable)}"
        raise SeveralRuns(f"{what} cannot be read", [*found, *unreadable])
    if not found and verb in _RUNNING:
        raise _nothing_runs(ids[0], verb)
    return home, found[0].workflow_id if found else ids[0]


def _nothing_runs(latest: str, verb: str) -> UsageError:
    ended = f"; raymond wait {latest} exits with its exit code" if verb == "wait" else ""
    return UsageError("no run here is running", hint=f"raymond status shows the latest run{ended}")


def _actable(rows: list[RunRow], verb: str, changes: bool) -> list[RunRow]:
    """The runs that a command without an id may mean; nothing when it takes the latest."""
    acts = _ACTS.get(verb, (_is_unfinished,) if changes else ())
    for can in acts:
        found = [row for row in rows if can(row)]
        if found:
            return found
    return []


def actable(rows: list[RunRow], verb: str) -> list[RunRow]:
    """The runs of these that `verb` can act on; all of them for one that only looks."""
    return _actable(rows, verb, changes=False) if verb in _ACTS else rows


def _elsewhere(home: Project, verb: str, changes: bool) -> UsageError | RunNotFound:
    """No run was started here: the error that names those of other projects."""
    nothing = nothing_in(home)
    rows = runs.rows(every=True)
    found = _actable(rows, verb, changes) or ([] if changes or verb in _ACTS else rows)
    return SeveralRuns(str(nothing), found, way="or say which", first=nothing.hint) if found else nothing


# --- a run with a name


def _named(home: Project, given: str, verb: str) -> tuple[Project, str]:
    if not given:
        raise UsageError("the id of the run is empty", hint="raymond list --all shows the ids of all runs")
    projects.check_id(given)
    if home.run(given).exists:
        return home, given
    others = [project for project in projects.known(home.home) if project.tree != home.tree]
    found = [(project, given) for project in others if project.run(given).exists]
    if not found:
        found = [(home, id) for id in home.ids() if id.startswith(given)]
    if not found:
        found = [(project, id) for project in others for id in project.ids() if id.startswith(given)]
        _check_whole(given, found, verb)
    if len(found) == 1:
        return found[0]
    if not found:
        raise unknown(given)
    raise _several(given, found)


def known(word: str) -> str:
    """The id of the run that a word would mean where an id is expected; empty when there is none, or several."""
    try:
        return named(word)[1] if word else ""
    except Error:
        return ""


def _several(given: str, found: list[tuple[Project, str]]) -> SeveralRuns:
    rows = [runs.row(project, id) for project, id in found]
    is_whole = all(id == given for _, id in found)
    what = f"is a run of {len(found)} other projects" if is_whole else f"is the beginning of {len(found)} runs"
    return SeveralRuns(f"`{given}` {what}", rows, given=given)


def _check_whole(given: str, found: list[tuple[Project, str]], verb: str) -> None:
    if found and verb in _WHOLE:
        rows = [runs.row(project, id) for project, id in found]
        what = f"`{given}` is a run of another project: `{verb}` cannot be undone, and needs its full id"
        raise SeveralRuns(what, rows, given=given, way="in full")


def needs_place(row: RunRow) -> bool:
    """Whether the id of a run, typed here, means a run of another project as well, or instead."""
    home = here()
    others = (one for one in (home, *projects.known(home.home)) if one.tree != row.project)
    return row.project != home.tree and any(one.run(row.workflow_id).exists for one in others)


def unknown(given: str, *, otherwise: str = _ALL, like: float = _LIKE) -> RunNotFound:
    """The error for a name that is nowhere; the hint names the ids that are `like` it, or what to do `otherwise`."""
    import difflib

    close = difflib.get_close_matches(given, dict.fromkeys(_ids_everywhere()), 3, like)
    hint = f"did you mean {' or '.join(f'`{id}`' for id in close)}?" if close else otherwise
    return RunNotFound(f"there is no run `{given}` here or in any other project", hint=hint)


def _ids_everywhere() -> Iterator[str]:
    """The ids of all runs, those of this project first."""
    home = here()
    for project in (home, *(one for one in projects.known(home.home) if one.tree != home.tree)):
        yield from project.ids()


# --- why there is none


def nothing_in(home: Project) -> RunNotFound:
    """The error for a project without runs: why there are none, and where there may be some."""
    before = _moved_from(home)
    if before:
        hint = f"this looks like {before}, moved: raymond resume ID --cd . continues a run of it here"
    else:
        hint = "raymond run PATH starts one; raymond list --all shows the runs of all projects"
    return RunNotFound("no run has been started here yet", hint=hint)


def _list(texts: Iterable[str]) -> str:
    some = list(texts)
    return ", ".join(some[:5]) + (", ..." if len(some) > 5 else "")


def _moved_from(home: Project) -> str:
    """The directory, now gone, that this repository seems to have had; empty when there is none."""
    root = git.root_commit(home.tree)
    for project in projects.known(home.home) if root else ():
        about = project.about()
        if about and about.root_commit == root and not os.path.exists(project.tree):
            return project.tree
    return ""


# --- what a word may mean: an agent, or an id


def names_of_agents(project: Project, id: str) -> AgentNames:
    """What the agents of a run are called now."""
    return questions.agent_names(journal.read(project.run(id)).run)


def agent_named(names: AgentNames, word: str) -> str:
    """The name of the agent that a word means; empty when no agent is called so, an error when several are."""
    found = names.of(word)
    if len(found) > 1:
        raise several_agents(word, found)
    return found[0] if found else ""


def agent_meant(project: Project, id: str, word: str) -> str:
    """The name of the agent that a word means; the word itself when no agent is called so."""
    return agent_named(names_of_agents(project, id), word) or word


def several_agents(word: str, found: tuple[str, ...]) -> UsageError:
    """The error for a label that several agents have."""
    some = ", ".join(found[:_AGENTS_SHOWN]) + (
        f" and {len(found) - _AGENTS_SHOWN} more" if len(found) > _AGENTS_SHOWN else ""
    )
    return UsageError(f"{len(found)} agents have the label `{word}`: {some}", hint="name one of them")


def unknown_agent(id: str, names: AgentNames, word: str) -> UsageError:
    """The error for a word that no agent is called by."""
    import difflib

    near = difflib.get_close_matches(word, [*names.names, *names.labels], 1)
    did_you_mean = f"did you mean `{near[0]}`? " if near else ""
    more = f" and {len(names.names) - _AGENTS_SHOWN} more" if len(names.names) > _AGENTS_SHOWN else ""
    hint = f"{did_you_mean}its agents: {', '.join(names.shown()[:_AGENTS_SHOWN])}{more}"
    return UsageError(f"there is no agent `{word}` in {id}", hint=hint)


def begins_id(word: str) -> bool:
    """Whether a run of any project is called that, or begins like it."""
    return bool(word) and any(id.startswith(word) for id in _ids_everywhere())


def is_id(word: str) -> bool:
    """Whether a run of any project is called exactly that."""
    return word in _ids_everywhere()
