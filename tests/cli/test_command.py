"""A line that is read without click means what it means to click."""

from importlib import import_module
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond import cli
from raymond.cli import by_click
from raymond.cli.command import Command, Param
from raymond.errors import UsageError

PLAIN = {name: one for name in cli.COMMANDS if isinstance(one := cli.command_named(name), Command)}
MADE = {name: by_click.made(one) for name, one in PLAIN.items()}
OF_COMMANDS = {"config", "prd", "ralph", "continuous-session", "task-loop", "story-loop"}
VALUES = ["x", "", "-", "--", "-x", "3", "0", "10m", "a=b", "START.md", "opus", "state", "run", "isolated", "--json"]


def words_of(param: Param) -> list[list[str]]:
    """Ways to type it."""
    if not param.flags:
        return [[value] for value in VALUES]
    if param.is_switch:
        return [[flag] for flag in param.flags] + [[f"{param.flags[-1]}=x"]]
    values = [*VALUES, *param.choices]
    apart = [[flag, value] for flag in param.flags for value in values]
    joined = [[f"{flag}{between}{value}"] for flag in param.flags for between in ("=", "") for value in values]
    return [*apart, *joined, [param.flags[0]]]


def by_click_read(command: Command, words: list[str]) -> dict[str, Any]:
    """What click makes of the words; its errors are raised."""
    with MADE[command.name].make_context(command.name, [*words]) as context:
        return context.params


@given(st.data())
@pytest.mark.parametrize("name", PLAIN)
def test_a_line_means_the_same_with_and_without_click(name: str, data: st.DataObject) -> None:
    command = PLAIN[name]
    some = [way for param in command.params for way in words_of(param)] + [[word] for word in VALUES]
    words = [word for way in data.draw(st.lists(st.sampled_from(some), max_size=5)) for word in way]
    read = command.read(words)
    try:
        assert read in (None, by_click_read(command, words))
    except (click.ClickException, click.exceptions.Exit, UsageError):
        assert read is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("status", []),
        ("status", ["r", "--json"]),
        ("list", ["--limit", "3", "--status", "failed", "--status=stopped"]),
        ("logs", ["-f", "r", "--since=10m"]),
        ("run", ["flow", "--input", "-", "--budget=5", "--var", "a=b", "--max-time", "8h", "-d"]),
        ("resume", ["r", "--agent", "main", "--retry"]),
        ("answer", ["r", "main", "--", "-yes"]),
        ("stop", ["a", "b", "--now"]),
    ],
)
def test_a_line_that_is_typed_right_needs_no_click(name: str, words: list[str]) -> None:
    assert PLAIN[name].read(words) == by_click_read(PLAIN[name], words)


def test_only_commands_of_commands_are_left_to_click() -> None:
    assert set(cli.COMMANDS) - set(PLAIN) == OF_COMMANDS
    assert all(isinstance(cli.command_named(name), by_click.Group) for name in OF_COMMANDS)


def test_every_command_is_in_the_file_that_its_name_says() -> None:
    for name in PLAIN:
        module = import_module(f"raymond.cli.{cli.SHARED.get(name, name)}")
        assert PLAIN[name] in vars(module).values()
        assert PLAIN[name].name == name
