"""`raymond config`: show settings and where they come from."""

import os
import sys
from typing import Any

import click
import msgspec

from raymond.cli.by_click import Group
from raymond.cli.command import option
from raymond.control import config
from raymond.control.settings import KEYS
from raymond.faces.foreign_text import said


@click.group("config", cls=Group, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """Show the settings; the same as `config show`."""
    return 0 if ctx.invoked_subcommand else int(ctx.invoke(show))


@command.define("show")
@option("--origin", is_flag=True, help="Show where each value was set.")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
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
        row = KEYS[name]
        is_set = one.value or one.origin != "default"
        value = row.kind.write(one.value) if is_set else row.unset or "not set"
        print(said(f"{name:<{width}} = {value}{where}", sys.stdout))
    for name, one in unused.items():
        value = KEYS[name].kind.write(one.value)
        told = f"{one.origin}: {name} = {value} is ignored: a project can only make settings stricter"
        print(said(told, sys.stderr), file=sys.stderr)
    return 0


def _plain(setting: config.Setting) -> dict[str, Any]:
    return {"value": setting.value, "origin": setting.origin}
