"""A value of a flag, read as settings are: the reader says what is wrong with it."""

from collections.abc import Callable
from typing import Any

import click


class Value(click.ParamType[Any]):
    """What a reader makes of a text; what is no text was made by one."""

    name = "value"

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value."""
        try:
            return self.read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"'{value}' is not {error}", param, ctx)
