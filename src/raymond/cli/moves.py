"""What `raymond resume` asks of a run before it is driven: a move of one agent, other limits."""

from raymond.cli import delivery, texts
from raymond.cli.flags import ResumeFlags
from raymond.control import agents, steer
from raymond.control.deliver import Delivery
from raymond.control.handle import RunHandle
from raymond.faces.lines import Lines


def ask(run: RunHandle, given: ResumeFlags) -> str:
    """Move an agent and change limits as asked; says who received that when another process drives the run."""
    left, agent = "", agents.meant(run.project, run.id, given.agent) if given.agent else ""
    if changes := given.changes:
        if changes.pop("allow_gate_commands", False):
            from raymond.control import gate_tools

            tools = [*changes.get("allow_tools", ()), *gate_tools.of_run(run.project, run.read())]
            changes["allow_tools"] = tuple(dict.fromkeys(tools))
        changed = steer.change_limits(run.project, run.id, changes, force=given.force, face=Lines())
        left = delivery.words(changed, run.id)
    if agent:
        # After the limits: an agent that tries again needs the tools that are allowed now.
        left = delivery.words(_move(run, given, agent), run.id, agent)
    return left


def _move(run: RunHandle, given: ResumeFlags, agent: str) -> Delivery:
    where = (run.project, run.id, agent)
    if given.goto is not None:
        text = texts.text(given.input_ or "", "--input", texts.SENT)
        return steer.move(*where, given.goto, text, force=given.force, face=Lines())
    if given.result is not None:
        text = texts.text(given.result, "--result", texts.SENT)
        return steer.finish(*where, text, force=given.force, face=Lines())
    if given.retry:
        return steer.retry(*where, fresh=given.fresh, force=given.force, face=Lines())
    return steer.give_up(*where, force=given.force, face=Lines())
