"""Which questions wait for an answer, in one run or in all of them."""

from collections.abc import Iterable
from time import time

from msgspec import Struct
from msgspec.structs import replace

from raymond import pasted
from raymond.control import runs
from raymond.errors import JournalError
from raymond.store import asked_files, journal
from raymond.store import project as projects
from raymond.store.asked_files import Found as Found
from raymond.store.project import Project
from raymond.views import questions
from raymond.views.questions import AgentNames, Question, open_questions


class Asked(Struct, frozen=True):
    """An open question, and the project of its run."""

    project: Project
    question: Question


class Reviews(Struct, frozen=True):
    """How much of a run waits for the review of a person."""

    project: Project
    id: str
    count: int


class Open(Struct, frozen=True):
    """The open questions of some runs, the oldest first; not those whose time is over."""

    asked: list[Asked]
    unreadable: dict[str, str]
    """Runs that cannot be read -> why."""
    names: tuple[AgentNames, ...] = ()
    """What the agents of the runs that ask something are called."""
    reviews: tuple[Reviews, ...] = ()
    """The runs with work that waits for a review."""


def of_run(project: Project, id: str) -> Open:
    """Those of one run."""
    run = journal.read(project.run(id)).run
    now = time()
    asked = [Asked(project, one) for one in open_questions(run) if not one.is_overdue(now)]
    return Open(asked, {}, (questions.agent_names(run),))


def overdue(project: Project, id: str, agent: str = "") -> list[Question]:
    """The questions of a run, or of an agent of it, whose time is over and that no driver has seen to."""
    now, found = time(), open_questions(journal.read(project.run(id)).run)
    return [one for one in found if agent in ("", one.agent) and one.is_overdue(now)]


def of_runs(*, every: bool) -> Open:
    """Those of this project, or of all projects."""
    mine = _of(runs.projects_of(every=every))
    return replace(mine, unreadable={**mine.unreadable, **runs.unreadable(every=every)})


def _of(found: Iterable[Project]) -> Open:
    asked: list[Asked] = []
    unreadable: dict[str, str] = {}
    names: list[AgentNames] = []
    reviews: list[Reviews] = []
    for project, id in [(one, id) for one in found for id in one.ids()]:
        row = runs.row(project, id)
        reviews += [Reviews(project, id, row.reviews)] if row.reviews else []
        if row.is_over or row.status == "failed":
            continue
        try:
            mine = of_run(project, id)
        except JournalError as error:
            unreadable[f"{id} in {project.tree}"] = str(error)
            continue
        asked += mine.asked
        names += mine.names if mine.asked else ()
    return Open(sorted(asked, key=lambda one: one.question.asked_at), unreadable, tuple(names), tuple(reviews))


def files_of(question: Question) -> list[Found]:
    """The files of a question as they are now."""
    return asked_files.read_all(question.cwd, question.files)


def changed(question: Question) -> list[str]:
    """The files of a question that can be shown and are no longer what they were when it was asked."""
    return asked_files.changed(files_of(question), question.files, {})


def way(asked: Asked) -> str:
    """The command that answers a question, wherever it is typed in this project."""
    id = asked.question.workflow_id
    return f"raymond {_there(asked.project, id)}answer {id} {pasted.word(asked.question.agent, 'AGENT')}"


def way_to_review(found: Reviews) -> str:
    """The command that shows what waits for a review."""
    return f"raymond {_there(found.project, found.id)}review {found.id}"


def _there(project: Project, id: str) -> str:
    """The option that says which project is meant, if several have a run of this name."""
    home = runs.here()
    others = [one for one in (home, *projects.known(home.home)) if one.tree != project.tree]
    return f"-C {pasted.word(project.tree, 'DIR')} " if any(one.run(id).exists for one in others) else ""
