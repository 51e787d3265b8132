"""`raymond run`: start a workflow."""

import os
import sys
from typing import Any

import click

from raymond.cli import background, flags, foreground
from raymond.control import config
from raymond.control.start import begin, prepare
from raymond.store import loader, project


@click.command("run")
@flags.starting
def command(path: str, **given: Any) -> int:
    """Start the workflow in PATH: a folder, a zip, or one state file."""
    return start(path, given)


def start(path: str, given: dict[str, Any]) -> int:
    """Begin a run and drive it, here or in the background."""
    loaded = loader.load(path, overrides=flags.overrides(given["settings"]))
    flags.go_to(given)
    found = project.find(os.getcwd())
    settings = flags.configuration(found.root if found else "", given)
    options = flags.options(given, settings, config.site_rules())
    if given["dry_run"]:
        from raymond.cli import dry_run

        sys.stdout.write(dry_run.show(project.place(os.getcwd()), loaded, prepare(loaded, options), settings))
        return 0
    foreground.check(given)
    home = project.make(os.getcwd())
    id = begin(home, loaded, options)
    if given["detach"]:
        return background.start(home, id, given, loaded=loaded)
    return foreground.drive(home, id, given, loaded=loaded)
