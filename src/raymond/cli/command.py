"""A command: what it takes, as data, and how a line that is typed right is read.

Help, mistakes and completion are click's part, which takes longer to import than most commands take to run: `by_click`
makes a command of click of the same data when one of them is wanted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from raymond.errors import UsageError


class Type(Protocol):
    """What is made of a text that is typed."""

    @property
    def read(self) -> Callable[[str], Any]:
        """The value; ValueError says what the text is not."""


class Param(Struct, frozen=True, kw_only=True):
    """A flag or an argument."""

    name: str
    flags: tuple[str, ...] = ()
    """What is typed; none for an argument."""
    help: str = ""
    metavar: str | None = None
    type: Type | None = None
    """None for a text."""
    choices: tuple[str, ...] = ()
    is_switch: bool = False
    many: bool = False
    required: bool = False
    default: Any = None
    complete: Callable[..., Any] | None = None
    """For shells, as click asks."""
    group: str = ""
    often: bool = False
    """Whether people want it often: the short help shows it."""

    def value(self, typed: Sequence[str]) -> Any:
        """What was typed for it, as its command takes it; ValueError and UsageError for what is none."""
        if self.is_switch:
            return bool(typed)
        if self.many:
            return tuple(map(self._one, typed))
        return self._one(typed[-1]) if typed else self.default

    def _one(self, text: str) -> Any:
        if self.choices and text not in self.choices:
            raise ValueError(text)
        return self.type.read(text) if self.type else text


class Command:
    """A command, and what it takes."""

    def __init__(self, name: str, run: Callable[..., Any], *, grouped: bool = False) -> None:
        self.name = name
        self.run = run
        self.params = tuple(params_of(run))
        self.grouped = grouped
        """Its flags are many: help has them in groups, and only those that are wanted often."""

    @cached_property
    def _flags(self) -> Mapping[str, Param]:
        return {flag: param for param in self.params for flag in param.flags}

    def read(self, words: Sequence[str]) -> dict[str, Any] | None:
        """What the words after the command say, by name; None for help, mistakes and what is put unusually."""
        given: dict[str, list[str]] = {param.name: [] for param in self.params}
        rest: list[str] = []
        left = iter(words)
        for word in left:
            if word == "--":
                rest.extend(left)
            elif word[:1] != "-" or word == "-":
                rest.append(word)
            else:
                flag, equals, value = word.partition("=")
                param = self._flags.get(flag)
                if param is None or (equals and param.is_switch):
                    return None
                if not equals and not param.is_switch:
                    following = next(left, None)
                    if following is None:
                        return None
                    value = following
                given[param.name].append(value)
        for param in self.params:
            if not param.flags:
                taken = len(rest) if param.many else 1
                given[param.name], rest = rest[:taken], rest[taken:]
        if rest or any(param.required and not given[param.name] for param in self.params):
            return None
        try:
            return {param.name: param.value(given[param.name]) for param in self.params}
        except (ValueError, UsageError):
            return None


Called = TypeVar("Called", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Any]


def as_command(name: str, *, grouped: bool = False) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function that has flags and arguments."""
    return lambda run: Command(name, run, grouped=grouped)


def option(*names: str, is_flag: bool = False, **more: Any) -> Callable[[Called], Called]:
    """Give a function a flag: what is typed, and the name of its value if that is another."""
    flags = tuple(name for name in names if name.startswith("-"))
    own = [name for name in names if not name.startswith("-")]
    name = own[0] if own else max(flags, key=len).lstrip("-").replace("-", "_")
    return with_param(Param(name=name, flags=flags, is_switch=is_flag, **more))


def argument(name: str, *, required: bool = True, **more: Any) -> Callable[[Called], Called]:
    """Give a function an argument; one that takes many takes none, too."""
    return with_param(Param(name=name, required=required and not more.get("many"), **more))


def with_param(param: Param) -> Callable[[Called], Called]:
    """Give a function a flag or an argument, before those that it has."""

    def decorate(run: Called) -> Called:
        vars(run)[_PARAMS] = (param, *params_of(run))
        return run

    return decorate


_PARAMS = "_params"


def params_of(run: Callable[..., Any]) -> Iterable[Param]:
    """The flags and arguments of a function, in order."""
    found: tuple[Param, ...] = vars(run).get(_PARAMS, ())
    return found
