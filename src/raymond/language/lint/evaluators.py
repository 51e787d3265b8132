"""Whether an evaluator can choose what it names, and whether its judge is nothing else."""

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from raymond.errors import Diagnostic
from raymond.language import evaluator, frontmatter, judges, policy, reach
from raymond.language.tags import Transition, targets
from raymond.language.workflow import State, Workflow, mark_of, resolve

_JUDGE = ("evaluator", "prompt")


def sources(workflow: Workflow, counted: Collection[str]) -> dict[str, str]:
    """Every judge that is also a state, because a state among `counted` leads there -> that state."""
    found: dict[str, str] = {}
    if not judges.of(workflow):
        return found
    names = reach.Names(workflow.states)
    for name in sorted(set(counted) - judges.of(workflow).keys()):
        state = workflow.states[name]
        plain = replace(state, policy=replace(state.policy, evaluator=None))
        for target in reach.of_state(plain, workflow.lib, names).named & judges.of(workflow).keys():
            found.setdefault(target, name)
    return found


def check(workflow: Workflow, state: State, sources: Mapping[str, str]) -> Iterator[Diagnostic]:
    """What is wrong with the evaluator of a state; names of no state are reported with those of its policy."""
    found = state.policy.evaluator
    if found is None:
        return
    for path, chosen in evaluator.transitions(found):
        mark = mark_of(workflow, state, ("evaluator", *path))
        if refused := policy.permit(state.policy, [chosen]):
            hint = "an evaluator chooses only what allowed_transitions allows"
            yield frontmatter.diagnose(mark, "bad-value", refused.reason, hint)
        for name in _judges_in(workflow, chosen):
            yield frontmatter.diagnose(mark, "bad-value", f"{name} is a judge: no agent can go there", "name a state")
    judge = judges.of_state(workflow, state)
    if isinstance(judge, str) and judge:
        mark = mark_of(workflow, state, _JUDGE)
        for message, hint in _warnings(workflow, state, workflow.states[judge], sources):
            yield frontmatter.diagnose(mark, "bad-value", message, hint)


def check_judge(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """What a judge says that means nothing for it."""
    for key in dict.fromkeys(str(path[0]) for path in state.marks if path):
        if key not in judges.KEYS:
            message = f"{state.name} is a judge, and a judge has no `{key}`"
            hint = f"remove it; a judge may have: {', '.join(judges.KEYS)}"
            yield frontmatter.diagnose(mark_of(workflow, state, (key,)), "bad-value", message, hint)
    for at, allowed in enumerate(state.policy.allowed_transitions):
        if ("allowed_transitions",) in state.marks and allowed.tag != "result":
            message = f"{state.name} is a judge, and a judge goes nowhere: it cannot `{allowed.tag}`"
            mark = mark_of(workflow, state, ("allowed_transitions", at))
            yield frontmatter.diagnose(mark, "bad-value", message, "remove it: a judge answers with a word")


def _warnings(workflow: Workflow, state: State, judge: State, sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Why a state cannot be the judge of another."""
    if judge.kind == "script":
        yield f"{judge.name} is a script, and a judge is a prompt", "name a prompt: JUDGE.md"
    elif judge.name in (state.name, workflow.entry):
        yield f"{judge.name} is a state that agents are in, so it cannot judge", "name another prompt: JUDGE.md"
    elif judge.name in sources:
        message = f"{judge.name} is a state that {sources[judge.name]} leads to, so it cannot judge"
        yield message, "name another prompt: JUDGE.md"


def _judges_in(workflow: Workflow, chosen: Transition) -> Iterator[str]:
    """The judges that a transition would lead to."""
    for name in targets(chosen):
        found = resolve(workflow, name)
        if isinstance(found, str) and found in judges.of(workflow):
            yield found
