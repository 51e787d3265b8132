"""Which flags of `raymond resume` go together."""

from raymond.cli.flags import ResumeFlags
from raymond.errors import UsageError


def check(id: str | None, given: ResumeFlags) -> None:
    """Refuse flags that make no sense together."""
    moves = _moves(given)
    if moves and not given.agent:
        raise UsageError(f"{moves[0]} needs an agent", hint="--agent main")
    if given.agent and len(moves) != 1:
        raise UsageError("--agent needs one of --goto, --result, --retry, --give-up")
    if given.input_ is not None and given.goto is None:
        raise UsageError("--input goes with --goto", hint="raymond resume ID --agent main --goto STATE --input TEXT")
    many = "--all" if given.every else "--here" if given.here else ""
    if many and (id or given.agent or given.renew or given.changes):
        raise UsageError(f"{many} is for every run, not for one", hint=f"raymond resume {many}")
    if given.dry_run and not many:
        raise UsageError("--dry-run goes with --all", hint="raymond resume --all --dry-run")
    if given.yes and not many:
        raise UsageError("--yes goes with --all or --here", hint="raymond resume --all --yes")
    if given.cd and many:
        raise UsageError("--cd is for one run, not for all", hint="raymond resume ID --cd DIR")
    if given.renamed and not given.renew:
        raise UsageError("--map goes with --latest", hint="raymond resume ID --latest --map OLD=NEW")


def _moves(given: ResumeFlags) -> list[str]:
    asked = {
        "--goto": given.goto is not None,
        "--result": given.result is not None,
        "--retry": given.retry,
        "--give-up": given.give_up,
    }
    return [flag for flag, is_asked in asked.items() if is_asked]


def pair(given: str) -> tuple[str, str]:
    """The two names of `--map OLD=NEW`."""
    old, equals, new = given.partition("=")
    if not old or not equals or not new:
        raise UsageError(f"`{given}` is not OLD=NEW", hint="--map OLD.md=NEW.md")
    return old, new
