"""`raymond docs`: the pages, also where only the package is installed."""

import os
import sys

from raymond import pasted
from raymond.cli.command import argument, as_command
from raymond.errors import UsageError
from raymond.faces.foreign_text import said

PAGES = {
    "Start": {"tutorial": "the first five minutes, then from a shell loop to a workflow"},
    "Loops": {
        "loops": "which loop you want, how each works, what counts",
        "plans": "queues of next steps, specs with tasks, PRDs with stories",
    },
    "Operate": {
        "night": "leave it alone with a night: costs, cron, systemd, CI, notifications, undoing one",
        "events": "a webhook, a file or a CI job starts a run, once for each event",
        "runs": "where runs are kept, and what the words mean",
        "security": "who is trusted, workspaces, what is not promised",
    },
    "Write": {
        "writing": "which transition when, patterns, gates",
        "language": "the specification of the workflow language",
        "backends": "Claude Code, Codex, a program of your own",
    },
    "Reference": {
        "cli": "commands, flags, settings, exit codes",
        "json": "what programs can read, and the journal",
        "python": "Raymond inside your program",
    },
    "Contribute": {
        "design": "how it is built",
        "decisions": "choices and their reasons",
        "performance": "what it costs, measured",
    },
}
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = (os.path.join(_HERE, "docs"), os.path.join(_HERE, "..", "..", "docs"))
"""In an installed package, and in a checkout."""


@as_command("docs")
@argument("page", required=False)
def command(page: str | None) -> int:
    """Show PAGE; without one, list them."""
    if page is None:
        print("raymond docs PAGE shows one of these:", file=sys.stderr)
        for group, pages in PAGES.items():
            print(f"\n{group}")
            for name, about in pages.items():
                print(f"  {name:<12} {about}")
        return 0
    text = _read(page.removesuffix(".md").lower())
    if sys.stdout.isatty():
        import click

        click.echo_via_pager(said(text, sys.stdout))
    else:
        sys.stdout.write(text)
    return 0


def _read(page: str) -> str:
    known = [name for pages in PAGES.values() for name in pages]
    if page not in known:
        from difflib import get_close_matches

        close = get_close_matches(page, known, 1)
        hint = (
            f"did you mean `raymond docs {pasted.word(close[0], 'PAGE')}`?" if close else "raymond docs lists the pages"
        )
        raise UsageError(f"there is no page `{page}`", hint=hint)
    for folder in _FOLDERS:
        path = os.path.join(folder, f"{page}.md")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise UsageError("the pages are not installed", hint="install Raymond again, or read docs/ in its repository")
