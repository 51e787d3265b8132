"""`raymond completion`: the script that lets a shell complete commands and flags."""

import sys

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="bash|zsh|fish")
def command(shell: str) -> int:
    """Print the completion script for SHELL; e.g. in ~/.bashrc: eval "$(raymond completion bash)"."""
    from raymond.cli import COMPLETE, group

    kind = get_completion_class(shell)
    assert kind is not None
    sys.stdout.write(kind(group, {}, "raymond", COMPLETE).source() + "\n")
    return 0
