"""What the flags of `raymond resume` ask of a run: which go together, a move of one agent, other limits."""

from functools import partial

from raymond.cli import delivery, texts
from raymond.cli.flags import ResumeFlags
from raymond.control import naming, request
from raymond.control.handle import RunHandle
from raymond.control.request import Delivery
from raymond.errors import UsageError
from raymond.faces.lines import Lines


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


def request_for(run: RunHandle, given: ResumeFlags) -> str:
    """Move an agent and change limits as asked; says who received that when another process drives the run."""
    left, agent = "", naming.agent_meant(run.project, run.id, given.agent) if given.agent else ""
    if changes := given.changes:
        if changes.pop("allow_gate_commands", False):
            from raymond.control import gate

            tools = [*changes.get("allow_tools", ()), *gate.tool_patterns_of_run(run.project, run.read())]
            changes["allow_tools"] = tuple(dict.fromkeys(tools))
        changed = request.change_limits(run.project, run.id, changes, force=given.force, face=Lines())
        left = delivery.words(changed, run.id)
    if agent:
        # After the limits: an agent that tries again needs the tools that are allowed now.
        left = delivery.words(_move(run, given, agent), run.id, agent)
    return left


def _move(run: RunHandle, given: ResumeFlags, agent: str) -> Delivery:
    ask = partial(request.ask, run.project, run.id, agent=agent, force=given.force, face=Lines())
    if given.goto is not None:
        return ask("move", state=given.goto, text=texts.text(given.input_ or "", "--input", texts.SENT))
    if given.result is not None:
        return ask("result", text=texts.text(given.result, "--result", texts.SENT))
    return ask("retry", fresh=given.fresh) if given.retry else ask("give_up")
