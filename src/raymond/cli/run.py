"""`raymond run`: start a workflow."""

import os
import sys

import click

from raymond.cli import background, choice, flags, foreground, texts
from raymond.cli.flags import StartFlags
from raymond.control import config, inside, start


@click.command("run")
@flags.starting
def command(path: str, given: StartFlags) -> int:
    """Start the workflow in PATH: a folder, a zip, or one state file."""
    if given.show.detach:
        inside.leave()
    loaded = start.load(path, texts.overrides(given.settings))
    given = flags.go_to(given)
    settings = flags.configuration(config.tree_of(os.getcwd()), given)
    options = start.configured(flags.options(given), settings, config.site_rules())
    if given.dry_run:
        from raymond.cli import dry_run
        from raymond.control.plan import plan

        sys.stdout.write(dry_run.show(plan(loaded, options, settings)))
        return 0
    foreground.check(given.show)
    choice.mention_earlier()
    run = start.begin_here(loaded, options)
    choice.warn_of_reach(run)
    return (background.start if given.show.detach else foreground.drive)(run, given.show)
