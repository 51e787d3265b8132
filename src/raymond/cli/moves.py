"""What `raymond resume` asks of a run before it is driven: a move of one agent, other limits."""

from raymond.cli import delivery, texts
from raymond.cli.flags import ResumeFlags
from raymond.control import naming, request
from raymond.control.handle import RunHandle
from raymond.control.request import Delivery
from raymond.faces.lines import Lines


def ask(run: RunHandle, given: ResumeFlags) -> str:
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
    where = (run.project, run.id, agent)
    if given.goto is not None:
        text = texts.text(given.input_ or "", "--input", texts.SENT)
        return request.move(*where, given.goto, text, force=given.force, face=Lines())
    if given.result is not None:
        text = texts.text(given.result, "--result", texts.SENT)
        return request.finish(*where, text, force=given.force, face=Lines())
    if given.retry:
        return request.retry(*where, fresh=given.fresh, force=given.force, face=Lines())
    return request.give_up(*where, force=given.force, face=Lines())
