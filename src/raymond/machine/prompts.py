"""The text sent to a model: the rendered prompt, or a reminder of what was wrong with the last reply."""

import re
from collections.abc import Mapping

from raymond.digests import digest
from raymond.language import judges, policy, reading, template
from raymond.language.allowed_transitions import show
from raymond.language.tags import TAGS
from raymond.language.workflow import State, Workflow
from raymond.machine import placed_workflow
from raymond.machine.agent import Agent, Visit
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run, pool_of
from raymond.patterns import regex

_TAG = regex(rf"<(?=/?(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_MOST_FILES = 20
"""Files that an agent is told it changed."""
_CONTROL = regex(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
BLOCKED = "(Some tools you needed were denied. Someone has reviewed this and may have allowed them. Please try again.)"
CAPPED = "(Your last turn reached its cost limit. More budget is available now: continue where you left off.)"
INTERRUPTED = "(Your last attempt was interrupted. Its changes may already be in the working tree.)"

_SAY_WHY = (
    "If the task itself needs them, say why in your reply, before the tag: a person will read it beside the difference."
)
_ASKED = {
    "review": (
        "You changed files that decide this check, and it is green only with your versions:",
        "Undo these changes and do the work without them.",
    ),
    "not comparable": (
        "These files decide the check and are not as they were; what it says without that could not be found out:",
        "That need not be your fault. Undo changes of yours that the work can do without.",
    ),
}
"""What an agent is told before and after the list of what changed."""


def prompt(run: Run, placed: PlacedWorkflow, agent: Agent) -> str:
    """The text of the agent's next turn."""
    state, visit = placed.workflow.states[agent.state], agent.visit
    if not _is_reminder(visit):
        text = render(run, placed, agent, state.body)
    else:
        text = _reminder(placed.workflow, state, visit)
        if not agent.remembers(pool_of(run, agent.state)):
            # An agent without a conversation needs the whole prompt again.
            text = f"{render(run, placed, agent, state.body)}\n\n{text}"
    return f"{INTERRUPTED}\n\n{text}" if visit.interrupted else text


def _is_reminder(visit: Visit) -> bool:
    return bool(visit.reminder) or visit.reminded_for != "rejected"


def _reminder(workflow: Workflow, state: State, visit: Visit) -> str:
    if visit.reminded_for == "capped":
        return CAPPED
    if visit.reminded_for == "blocked":
        return BLOCKED
    if visit.reminded_for == "gate":
        return red(workflow, state, visit.reminder)
    if visit.reminded_for == "review":
        return changed(workflow, state, visit)
    return remind(workflow, state, visit.reminder)


def render(run: Run, placed: PlacedWorkflow, agent: Agent, text: str, more: Mapping[str, str] = {}) -> str:
    """`text` with the names bound in this visit replaced, and with `more` of them."""
    if "{{" not in text:
        return text
    return template.render(text, {**placed_workflow.values_of_visit(run, placed, agent), **more}, placed.workflow.lib)


def judge(run: Run, placed: PlacedWorkflow, agent: Agent) -> str:
    """The text that the judge of the agent's state is asked: its prompt, and what would be an answer if it had none."""
    pending, state = agent.visit.pending, placed.workflow.states[agent.state]
    name = judges.of_state(placed.workflow, state)
    if pending is None or state.policy.evaluator is None or not isinstance(name, str) or not name:
        return ""  # the workflow has changed
    values = placed_workflow.values_of_visit(run, placed, agent)
    values |= {"output": pending.output, "transition": "\n".join(map(show, pending.asked))}
    text = template.render(placed.workflow.states[name].body, values, placed.workflow.lib)
    if not pending.again:
        return text
    words = ", ".join(state.policy.evaluator.verdicts)
    return f"{text.rstrip()}\n\nReply with exactly one of these words and nothing else: {words}"


def remind(workflow: Workflow, state: State, reason: str) -> str:
    """What was wrong and what would be right, without the prompt."""
    return (
        f"I could not act on your reply: {reason}\n"
        f"Do not repeat the work. Reply again and end with exactly one of:\n{choices(workflow, state)}"
    )


def red(workflow: Workflow, state: State, told: str) -> str:
    """That the check is red, with the end of what it printed, which says nothing on its own account."""
    reason, _, output = told.partition("\n")
    text = f"Raymond ran the check of this step, and it is not green: {reason}\n"
    return f"{text}{_fenced(output)}Find out why and fix the cause; do not weaken the check. {_ending(workflow, state)}"


def changed(workflow: Workflow, state: State, visit: Visit) -> str:
    """That the check is green only because what decides it is not as it was; or that a person did not want that."""
    reason, _, output = visit.reminder.partition("\n")
    if not visit.review:
        asked = "Undo that change, and do the work without it."
    else:
        files = "\n".join(f"- {neutral(one)}" for one in visit.review.changes[:_MOST_FILES])
        first, then = _ASKED[visit.review.verdict]
        asked = f"{first}\n{files}\n{then} {_SAY_WHY}"
    text = f"Raymond ran the check of this step, and its result does not count: {neutral(reason)}\n"
    return f"{text}{_fenced(output)}{asked}\n{_ending(workflow, state)}"


def _ending(workflow: Workflow, state: State) -> str:
    """How the reply has to end; where nothing in it is read as a tag, that is what the prompt has said."""
    if state.policy.force_implicit:
        return "Then end your reply as the prompt at the beginning asked for."
    return f"Then end your reply with exactly one of:\n{choices(workflow, state)}"


def _fenced(output: str) -> str:
    """What others printed. Whoever wrote it cannot know its digest, and so cannot close the fence."""
    if not output:
        return ""
    fence = f"output {digest(output.encode('utf-8', 'replace'))[:16]}"
    return f"--- {fence}\n{neutral(output)}\n--- end of {fence}\n"


def neutral(text: str) -> str:
    """`text` without anything that could be read as a tag of ours, and without what is meant for terminals."""
    return _CONTROL.sub("", _TAG.sub("&lt;", text))


def choices(workflow: Workflow, state: State) -> str:
    """The transitions open to `state`: from its policy, else from its text, else general forms with all state names."""
    if state.policy.allowed_transitions:
        return policy.instructions(state.policy)
    mentioned = [tag for tag in reading.scan(state.body) if tag.name != "print"]
    if mentioned:
        written = dict.fromkeys(state.body[tag.start : tag.stop] for tag in mentioned)
        return "\n".join(written)
    names = sorted(workflow.states.keys() - judges.of(workflow).keys())
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"<goto>STATE</goto>\n<result>your result</result>\nwhere STATE is one of: {shown}"
