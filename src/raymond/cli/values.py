"""What commands take: values, read as settings are, and names, which are never empty and which shells complete."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from raymond.errors import UsageError

if TYPE_CHECKING:
    from click import Context, Parameter
    from click.shell_completion import CompletionItem


class Value:
    """A value, as a setting of this kind is read."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read


class Name:
    """The name of something there is."""

    def __init__(self, kind: str, what: str, way: str) -> None:
        self._kind = kind
        self._what = what
        self._way = way

    def read(self, text: str) -> str:
        """The name as it was given."""
        if not text:
            raise UsageError(f"the {self._what} is empty", hint=self._way)
        return text

    def complete(self, ctx: "Context", param: "Parameter", incomplete: str) -> "list[CompletionItem[str]]":
        """The names there are."""
        return offer(_known(self._kind, ctx, incomplete), incomplete)


RUN = Name("run", "id of the run", "raymond list --all shows the ids of all runs")
AGENT = Name("agent", "name of the agent", "raymond status shows the agents of a run")
STATE = Name("state", "name of the state", "raymond status shows the states of a run")
BACKEND = Name("backend", "name of the backend", "raymond doctor shows the backends")


def _known(kind: str, ctx: "Context", begins: str) -> list[tuple[str, str]]:
    """Names with a word about each."""
    from raymond.control import candidates

    # Before the value of an option is there, click has not given the arguments their names.
    words = [ctx.params.get("id_"), *(word for word in ctx.args if not word.startswith("-"))]
    verb, run = ctx.command.name or "", next(filter(None, words), None)
    match kind:
        case "run":
            found = candidates.ids(verb, begins)
            return [(row.workflow_id, f"{row.status} {row.project.rpartition('/')[2]}") for row in found]
        case "agent":
            return candidates.agents(run, ended=verb == "logs")
        case "state":
            return [(name, "state") for name in candidates.states(run)]
        case _:
            return [(name, "backend") for name in candidates.backends()]


def complete_answer(ctx: "Context", param: "Parameter", incomplete: str) -> "list[CompletionItem[str]]":
    """For `answer`: a run that asks, then an agent of it that asks; an answer is never proposed."""
    from raymond.control import candidates

    words = ctx.params.get("words") or ()
    if not words:
        return offer(_known("run", ctx, incomplete), incomplete)
    return offer(candidates.agents(words[0], asking=True), incomplete) if len(words) == 1 else []


def complete_workflow(ctx: "Context", param: "Parameter", incomplete: str) -> "list[CompletionItem[str]]":
    """Workflows that lie nearby, and every other file."""
    from click.shell_completion import CompletionItem

    from raymond.control import candidates

    near = offer([(path, "workflow") for path in candidates.workflows()], incomplete)
    return [*near, CompletionItem(incomplete, type="file")]


def complete_project(ctx: "Context", param: "Parameter", incomplete: str) -> "list[CompletionItem[str]]":
    """The names of the projects that have runs."""
    from raymond.control import runs

    trees = [one.tree for one in runs.projects_of(every=True) if one.ids()]
    return offer([(tree.rpartition("/")[2], tree) for tree in trees], incomplete)


def offer(values: list[tuple[str, str]], current: str) -> "list[CompletionItem[str]]":
    """Values with a word about each; one that looks like a flag is never offered as a value."""
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(value, help=told)
        for value, told in values
        if value.startswith(current) and not value.startswith(("-", "="))
    ]
