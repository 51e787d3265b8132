"""What the turns of runs cost."""

from collections.abc import Iterable

from msgspec import Struct

from raymond.errors import JournalError
from raymond.store import journal
from raymond.store.project import Project
from raymond.views import cost
from raymond.views.cost import Entry, Sum


class Costs(Struct):
    """Sums by state, agent, model, day or run, the most expensive first."""

    by: str
    sums: dict[str, Sum]
    total: Sum


class Books(Struct):
    """Every paid turn of some runs, and the runs whose journals cannot be read."""

    entries: list[Entry]
    unreadable: dict[str, JournalError]
    several: bool = False
    """Whether they are of more than one run."""


def of_run(project: Project, id: str) -> Books:
    """The turns of one run."""
    return Books(cost.entries(id, journal.decisions(project.run(id))), {})


def of_projects(projects: Iterable[Project]) -> Books:
    """The turns of all runs of some projects; of two runs with one id, the second also has the name of its project."""
    books = Books([], {}, several=True)
    seen: set[str] = set()
    for project in projects:
        for id in project.ids():
            name = f"{id} ({project.tree})" if id in seen else id
            seen.add(id)
            try:
                books.entries += cost.entries(name, journal.decisions(project.run(id)))
            except JournalError as error:
                books.unreadable[name] = error.with_traceback(None)  # which would keep the journal in memory
    return books


def costs(books: Books, by: str) -> Costs:
    """The sums of `books`, a row for each `by`."""
    return Costs(by, cost.sums(books.entries, by, several=books.several), cost.total(books.entries))
