"""What a turn is sent: the rendered prompt, or a reminder of what was wrong with the last reply."""

from raymond.language import policy, reading, template
from raymond.language.workflow import State, Workflow
from raymond.machine import variables
from raymond.machine.agent import Agent
from raymond.machine.run import Run, pool_of
from raymond.machine.workspace import Workspace

BLOCKED = "(Tools that you need were refused. A person has looked at it: they may be allowed now. Try again.)"
GO_ON = "(You were stopped at a limit of cost. There is more now: go on where you were.)"
INTERRUPTED = "(Your last attempt at this was interrupted. What it changed may already be in the working tree.)"


def prompt(run: Run, workspace: Workspace, agent: Agent) -> str:
    """The text of the agent's next turn."""
    state = workspace.workflow.states[agent.state]
    if not agent.reminder:
        text = render(run, workspace, agent, state.body)
    elif agent.capped:
        text = GO_ON
    elif agent.blocked:
        text = BLOCKED
    else:
        text = remind(workspace.workflow, state, agent.reminder)
    if agent.reminder and not (agent.session and agent.backend == pool_of(run, agent.state)):
        # Who remembers nothing needs the whole prompt again.
        text = f"{render(run, workspace, agent, state.body)}\n\n{text}"
    return f"{INTERRUPTED}\n\n{text}" if agent.interrupted else text


def render(run: Run, workspace: Workspace, agent: Agent, text: str) -> str:
    """`text` with the names bound in this visit replaced."""
    if "{{" not in text:
        return text
    return template.render(text, variables.values(run, workspace, agent), workspace.workflow.lib)


def remind(workflow: Workflow, state: State, reason: str) -> str:
    """What was wrong and what would be right, without the prompt."""
    return (
        f"Your reply could not be used: {reason}\n"
        f"Nothing else is asked: end your reply with exactly one of these.\n{choices(workflow, state)}"
    )


def choices(workflow: Workflow, state: State) -> str:
    """The transitions open to `state`: by its policy, else by its text, else every form with the names there are."""
    if state.policy.allowed_transitions:
        return policy.instructions(state.policy)
    mentioned = [tag for tag in reading.scan(state.body) if tag.name != "print"]
    if mentioned:
        written = dict.fromkeys(state.body[tag.start : tag.stop] for tag in mentioned)
        return "\n".join(written)
    names = sorted(workflow.states)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"<goto>STATE</goto>\n<result>your result</result>\nwhere STATE is one of: {shown}"
