"""`raymond config`: show settings and where they come from."""

import os
import sys
from typing import Any

import click
import msgspec

from raymond import amounts, durations
from raymond.control import config
from raymond.faces.foreign_text import said


@click.group("config", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """Show the settings; the same as `config show`."""
    return 0 if ctx.invoked_subcommand else int(ctx.invoke(show))


@command.command("show")
@click.option("--origin", is_flag=True, help="Show where each value was set.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def show(origin: bool, as_json: bool) -> int:
    """Show every key with the value in effect here."""
    found = config.load(config.tree_of(os.getcwd()))
    settings, unused = found.settings, found.unused
    if as_json:
        values = {name: {**_plain(one), "unused": None} for name, one in settings.items()}
        for name, one in unused.items():
            values[name]["unused"] = _plain(one)
        sys.stdout.write(msgspec.json.encode(values).decode() + "\n")
        return 0
    width = max(len(name) for name in settings)
    for name, one in settings.items():
        where = f"  # {one.origin}" if origin else ""
        told = one.value or config.KEYS[name].unset
        value = written(name, told) if told or one.origin != "default" else "not set"
        print(said(f"{name:<{width}} = {value}{where}", sys.stdout))
    for name, one in unused.items():
        told = (
            f"{one.origin}: {name} = {written(name, one.value)} is ignored: a project can only make settings stricter"
        )
        print(said(told, sys.stderr), file=sys.stderr)
    return 0


def _plain(setting: config.Setting) -> dict[str, Any]:
    return {"value": setting.value, "origin": setting.origin}


def written(name: str, value: Any) -> str:
    """As config.toml would have it."""
    if config.KEYS[name].read is config.duration:
        return f'"{durations.written(value)}"'
    if config.KEYS[name].read is amounts.size:
        return f'"{amounts.written(value)}"'
    if isinstance(value, list | str | dict):
        return msgspec.json.encode(value).decode()
    return str(value)
