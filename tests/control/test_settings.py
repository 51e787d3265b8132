"""The table of settings: one row is all that a setting needs to be set anywhere."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Annotated

import click
import pytest
from msgspec import Struct

from raymond.cli import by_click, flags
from raymond.cli.command import as_command
from raymond.cli.flags import GROUPS, ResumeFlags, ShowFlags, StartFlags
from raymond.cli.loop_start import OnceFlags as Once
from raymond.control import config, preflight, start
from raymond.control.settings import (
    COUNT,
    KEYS,
    LIMITS,
    OPTIONS,
    RUN,
    SITE_KEYS,
    START,
    SWITCH,
    Kind,
    Options,
    Row,
    SiteRules,
    rows,
)
from raymond.errors import UsageError
from raymond.loops.settings import Settings
from raymond.machine.events import RunStarted

SETTABLE = {name: row for name, row in OPTIONS.items() if row.example}


def example(row: Row) -> object:
    return tomllib.loads(f"value = {row.example}")["value"]


def flags_of(*path: str) -> set[str]:
    command: click.Command = by_click.group
    for word in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return {flag for param in command.params if isinstance(param, click.Option) for flag in param.opts}


def test_every_option_and_every_site_rule_has_a_row() -> None:
    assert [*OPTIONS] == [*Options.__struct_fields__]
    assert [*SITE_KEYS] == [*SiteRules.__struct_fields__]
    assert [name for name, row in {**OPTIONS, **KEYS, **SITE_KEYS}.items() if not row.about.endswith(".")] == []


@pytest.mark.parametrize("table", [Options, SiteRules, Settings, Once, StartFlags, ResumeFlags, ShowFlags])
def test_every_row_is_well_formed(table: type[Struct]) -> None:
    """Type checkers do not look into annotations."""
    for name, row in rows(table).items():
        assert isinstance(row.kind, Kind), name
        assert [type(value) for value in (row.about, row.group, row.example, row.unset, row.metavar)] == [str] * 5, name
        assert row.group in ("", *GROUPS), name
        assert {type(word) for word in row.where} == {str}, name
        assert row.reach is None or callable(row.reach), name


@pytest.mark.parametrize("name", OPTIONS)
def test_a_row_with_a_group_is_a_flag_of_the_commands_that_it_names(name: str) -> None:
    row = OPTIONS[name]
    has = {" ".join(path): set(row.flags) <= flags_of(*path) for path in (("run",), ("start",), ("task-loop", "start"))}
    is_of_run = bool(row.group) and bool({START, RUN} & set(row.where))
    # Every loop has a limit of its own for its items.
    is_of_loops = bool(row.group) and (START in row.where or name == "max_iterations")
    assert has == {"run": is_of_run, "start": is_of_run, "task-loop start": is_of_loops}


@pytest.mark.parametrize("name", KEYS)
def test_the_example_of_a_row_is_right_in_config_toml(tmp_path: Path, name: str) -> None:
    row = KEYS[name]
    file = tmp_path / "raymond" / "config.toml"
    file.parent.mkdir()
    file.write_text(f"{name} = {row.example}\n", "utf-8")
    found = config.load("", environment={"XDG_CONFIG_HOME": str(tmp_path)}, policy_file="")
    assert found.settings[name] == config.Setting(row.kind.read(example(row)), str(file))
    if not row.is_table:  # tables are shown as JSON
        file.write_text(f"{name} = {row.kind.write(found[name])}\n", "utf-8")
    again = config.load("", environment={"XDG_CONFIG_HOME": str(tmp_path)}, policy_file="")
    assert again[name] == found[name], "what `config show` prints can be pasted"


@pytest.mark.parametrize("name", SETTABLE)
def test_what_a_row_sets_reaches_the_run_from_the_environment_and_from_options(name: str) -> None:
    row = SETTABLE[name]
    value = row.kind.read(example(row))
    written = str(example(row)) if not isinstance(value, list) else ",".join(value)
    variable = f"RAYMOND_{name.upper()}"
    by_variable = config.load("", environment={variable: written}, policy_file="")
    assert by_variable.settings[name] == config.Setting(value, variable)
    by_option = config.load("", flags={name: value}, environment={}, policy_file="")
    assert by_option.settings[name] == config.Setting(value, row.flags[-1] if row.group else f"Options.{name}")
    choices = start.configured(Options(), by_variable, SiteRules())
    assert getattr(choices, name) == value
    field = {"allow_tools": "allowed_tools", "max_parallel": "max_turns_at_once"}.get(name, name)
    assert field in RunStarted.__struct_fields__


def test_a_new_limit_is_one_row() -> None:
    class Longer(Options, kw_only=True):
        max_files: Annotated[int | None, Row("Files to change at most.", COUNT, LIMITS, "50", 7)] = None

    [row] = [row for row in flags.flag_rows(Longer, START) if row.name not in OPTIONS]
    assert (row.flags, row.word, row.default) == (["--max-files"], "files", 7)
    bare = by_click.made(as_command("run")(flags.flag_of(row)(lambda max_files: max_files)))
    assert bare.main(["--max-files", "3"], standalone_mode=False) == 3
    assert "--max-files N  Files to change at most (7)." in bare.get_help(click.Context(bare))
    with pytest.raises(click.BadParameter, match="'0' is not a whole number, 1 or more"):
        bare.main(["--max-files", "0"], standalone_mode=False)


def test_a_row_of_a_struct_below_comes_after_those_above() -> None:
    class Above(Options, kw_only=True):
        last: Annotated[bool, Row("The last.", SWITCH, LIMITS)] = False

    assert [*rows(Above)] == [*OPTIONS, "last"]


@pytest.mark.parametrize("name", ["backend", "decide_by", "allow_tools", "notify", "retryable", "permission_mode"])
def test_a_project_sets_only_what_goes_less_far(tmp_path: Path, name: str) -> None:
    file = tmp_path / ".raymond" / "config.toml"
    file.parent.mkdir()
    file.write_text(f"{name} = {KEYS[name].example}\n", "utf-8")
    with pytest.raises(UsageError, match=f"`{name}` is for a person to set, not for a project"):
        config.load(str(tmp_path), environment={}, policy_file="")


def test_what_is_settable_is_shown(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "raymond", "config", "show"]
    told = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in told.splitlines()] == [*KEYS]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ON_ASK", "`RAYMOND_ON_ASK` is not read; use --on-ask"),
        ("PRICES", "`RAYMOND_PRICES` is not read; write `prices` into config.toml"),
        ("WORKSPACE", "`RAYMOND_WORKSPACE` is not read; use --workspace"),
        ("BUGDET", "unknown setting `RAYMOND_BUGDET`; did you mean `RAYMOND_BUDGET`?"),
    ],
)
def test_a_variable_that_sets_nothing_is_told(name: str, said: str) -> None:
    [found] = preflight.environment_warnings({f"RAYMOND_{name}": "isolated", "RAYMOND_MODEL": "x"})
    assert f"{found.message}; {found.hint}" == said


@pytest.mark.parametrize("name", ["timeout", "tool_timeout"])
def test_a_time_in_which_something_has_to_happen_is_not_zero(name: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` must be a duration of more than 0s"):
        config.load("", environment={f"RAYMOND_{name.upper()}": "0s"}, policy_file="")
    with pytest.raises(UsageError, match=f"`{name}` must be seconds, more than 0, up to"):
        config.load("", flags={name: 0}, environment={}, policy_file="")
