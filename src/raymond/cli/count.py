"""How many of something, as a value of a flag."""

from typing import Any

import click

from raymond import amounts


class Count(click.ParamType[int]):
    """How many of something: 1 or more, unless there may be none."""

    name = "integer"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        try:
            return amounts.count(value, self._least)
        except ValueError as error:
            self.fail(f"'{value}' is not {error}.", param, ctx)
