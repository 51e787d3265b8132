"""`raymond config`: what is set, and where."""

import os
import sys
from typing import Any

import click
import msgspec

from raymond import config, durations, project


@click.group("config")
def command() -> None:
    """Show what is set."""


@command.command("show")
@click.option("--origin", is_flag=True, help="Say where each value was set.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def show(origin: bool, as_json: bool) -> int:
    """Every key with the value that counts here."""
    found = project.find(os.getcwd())
    settings = config.load(found.root if found else "").settings
    if as_json:
        values = {name: {"value": one.value, "origin": one.origin} for name, one in settings.items()}
        sys.stdout.write(msgspec.json.encode(values).decode() + "\n")
        return 0
    width = max(len(name) for name in settings)
    for name, one in settings.items():
        where = f"  # {one.origin}" if origin else ""
        print(f"{name:<{width}} = {_written(name, one.value)}{where}")
    return 0


def _written(name: str, value: Any) -> str:
    """As it would stand in config.toml."""
    if config.KEYS[name].read is config.duration:
        return f'"{durations.written(value)}"'
    if isinstance(value, list | str):
        return msgspec.json.encode(value).decode()
    return str(value)
