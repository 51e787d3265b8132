"""What belonged to internal mode, which is switched off."""

import click

from raymond.errors import UsageError


@click.command(hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def command() -> int:
    """Is switched off in this version: it was about loops whose items another program does."""
    hint = "raymond LOOP start runs the loop with agents of its own"
    raise UsageError("internal mode is switched off in this version: it moves into workspaces next", hint=hint)
