"""`raymond completion`: the script that lets a shell complete what is typed."""

import sys

import click

from raymond.cli.shell_scripts import SCRIPTS
from raymond.errors import UsageError


@click.command("completion")
@click.argument("shell", metavar="bash|zsh|fish", shell_complete=lambda *_: [*SCRIPTS])
def command(shell: str) -> int:
    """Print the completion script for SHELL; e.g. in ~/.bashrc: eval "$(raymond completion bash)"."""
    if shell not in SCRIPTS:
        raise UsageError(f"there is no completion for `{shell}`", hint=f"there is one for {', '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[shell])
    return 0
