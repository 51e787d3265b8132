"""`raymond trust`: let agents' programs use the settings that come with a project."""

import sys

from raymond.cli import prompt
from raymond.cli.command import argument, as_command, option
from raymond.control import trust
from raymond.control.trust import Offer
from raymond.errors import UsageError
from raymond.faces import foreign_text
from raymond.faces.foreign_text import said


@as_command("trust")
@argument("folder", metavar="[DIR]", required=False, default=".")
@option("--yes", is_flag=True, help="Do not ask.")
@option("--list", "listing", is_flag=True, help="List the projects that you trust.")
@option("--forget", is_flag=True, help="Trust the project no longer.")
def command(folder: str, yes: bool, listing: bool, forget: bool) -> int:
    """Let agents' programs use the settings in .claude, .mcp.json and .codex of the project in DIR, as they are now."""
    if listing and (forget or yes):
        other = "--forget" if forget else "--yes"
        hint = f"first raymond trust --list, then raymond trust {other} DIR"
        raise UsageError(f"--list and {other} do not go together", hint=hint)
    if listing:
        return _list()
    if forget:
        print(said(f"{trust.forget(folder)} is no longer trusted", sys.stderr), file=sys.stderr)
        return 0
    return _ask(trust.offer(folder), yes)


def _list() -> int:
    found = trust.trusted()
    if not found:
        print("you trust no project yet", file=sys.stderr)
    for tree, lapse in found.items():
        print(said(f"{tree}: no longer trusted: {lapse}" if lapse else tree, sys.stdout))
    return 0


def _ask(offer: Offer, yes: bool) -> int:
    actions = [(one.file, one.kind, one.text) for one in offer.runs]
    print("\n".join(foreign_text.trust_lines(offer.tree, offer.files, actions)), file=sys.stderr)
    if not offer.files:
        print("it brings no settings for agents' programs: there is nothing to trust", file=sys.stderr)
        return 0
    if offer.is_trusted:
        print("you trust it already", file=sys.stderr)
        return 0
    if not yes and not _agreed():
        print("not trusted", file=sys.stderr)
        return 1
    trust.accept(offer)
    print("trusted, until one of these files changes", file=sys.stderr)
    return 0


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "cannot ask whether to trust it without a terminal", hint="add --yes if you agree with the above"
        )
    return prompt.agrees_on_stderr("trust it?")
