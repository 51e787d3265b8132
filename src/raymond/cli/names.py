"""The names that commands take: never empty, as those of a variable that is not set are."""

from typing import Any

import click

from raymond.errors import UsageError


class Name(click.ParamType[str]):
    """The name of something there is."""

    name = "name"

    def __init__(self, what: str, way: str) -> None:
        self._what = what
        self._way = way

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it was given."""
        if not value:
            raise UsageError(f"the {self._what} is empty", hint=self._way)
        return str(value)


RUN = Name("id of the run", "raymond list --all shows the ids of all runs")
AGENT = Name("name of the agent", "raymond status shows the agents of a run")
