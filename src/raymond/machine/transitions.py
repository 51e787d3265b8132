"""Transition -> events: what an agent's move means for it, its children and its parent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from raymond.language import choices, judges
from raymond.language.refusal import Refusal
from raymond.language.tags import (
    NAME,
    Ask,
    Call,
    Fork,
    Function,
    Goto,
    Reset,
    Result,
    Transition,
    Wait,
    renamed,
    targets,
)
from raymond.language.workflow import resolve
from raymond.machine import prompts
from raymond.machine.agent import FAILED, SCRIPTS, WAITING, Agent, AskedFile, label_of
from raymond.machine.events import (
    ZERO,
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    AskStarted,
    Event,
    WaitEnded,
    WaitStarted,
)
from raymond.machine.failures import Kind, brief
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run, pool_of

FailureKind: TypeAlias = Kind | Literal["visits", "given up", "asked", "approval", "gate", "evaluator"]


class Landing(Struct, frozen=True):
    """Where a move ends up; `instead_of` names the state whose visits were used up."""

    state: str
    instead_of: str = ""


def follow(
    run: Run,
    placed: PlacedWorkflow,
    agent: Agent,
    asked: Sequence[Transition],
    *,
    time: float,
    directories: Mapping[str, str | Refusal],
    files: tuple[AskedFile, ...] | Refusal = (),
    output: str | None = None,
) -> list[Event] | Refusal:
    """The events of a permitted transition, or why it is not possible; `output` is what `{{output}}` stands for."""
    asked = [_rendered(run, placed, agent, one, output) for one in asked]
    if misnamed := _misnamed(placed, asked):
        return misnamed
    last, tag = asked[-1], ""
    if len(asked) == 1 and isinstance(last, Goto | Result):  # most: they name nothing but a state
        return _move(run, placed, agent, last, tag, time, {}, 0)
    forks = [one for one in asked if isinstance(one, Fork)]
    places = _places(asked, directories)
    if isinstance(places, Refusal):
        return places
    if isinstance(files, Refusal):
        return files
    refusal = _crowded(run, len(forks)) or _polluting(run, placed, agent, asked)
    refusal = refusal or _astray(run, agent, asked, places) or _unnamable(asked) or _barred(placed, asked)
    if refusal:
        return refusal
    if isinstance(last, Fork):
        last, tag = Goto(target=last.next), "fork"
    if isinstance(last, Ask):
        return _ask(run, placed, agent, last, time, files)
    moved = _move(run, placed, agent, last, tag, time, places, len(forks))
    if isinstance(moved[0], AgentFailed) or getattr(moved[0], "tag", "") == "on_error":
        return moved  # a visit that fails forks nothing: its retry would fork again
    return [*_forked(placed, agent, forks, time, places), *moved]


def resolved(placed: PlacedWorkflow, asked: Sequence[Transition]) -> list[Transition]:
    """Transitions that are possible, with the full names of their states."""
    return [renamed(one, lambda name: _name(placed, name)) for one in asked]


def _polluting(run: Run, placed: PlacedWorkflow, agent: Agent, asked: Sequence[Transition]) -> Refusal | None:
    """Refuse a call where the backend cannot branch: it would write into its caller's conversation."""
    if not any(isinstance(one, Call) for one in asked) or pool_of(run, agent.state) not in run.start.in_place:
        return None
    if placed.workflow.states[agent.state].policy.in_place:
        return None
    return Refusal("in_place", "`<call>` cannot be used here: the conversation cannot branch", "use <function> instead")


def _astray(run: Run, agent: Agent, asked: Sequence[Transition], places: Mapping[str, str]) -> Refusal | None:
    """Refuse to leave a directory whose gate has not passed: the next one would check whatever the agent has put there.

    A script is written by whoever wrote the gate.
    """
    here = agent.cwd or run.start.cwd
    if here not in run.seals or agent.visit.seal or pool_of(run, agent.state) == SCRIPTS:
        return None
    if all(places.get(one.cd, here) == here for one in asked if isinstance(one, Reset | Fork) and one.cd):
        return None
    reason = "`cd` cannot be used here: the check of this directory is not green yet"
    return Refusal("directory", reason, "leave it out")


def _unnamable(asked: Sequence[Transition]) -> Refusal | None:
    """Refuse a model or an effort that cannot be passed to a program."""
    for one in asked:
        names = (one.model, one.effort) if isinstance(one, Function) else ()
        if not all(NAME.fullmatch(name) for name in names if name):
            reason = "`model` and `effort` of `<function>` must be plain names"
            return Refusal("value", reason, "leave them out, or name a model")
    return None


def _barred(placed: PlacedWorkflow, asked: Sequence[Transition]) -> Refusal | None:
    """Refuse a model that the site rules do not allow, whoever names it."""
    for one in asked if placed.models else ():
        if isinstance(one, Function) and one.model and one.model not in placed.models:
            allowed = ", ".join(placed.models)
            return Refusal("value", f"the model `{one.model}` is not allowed here", f"leave it out, or use: {allowed}")
    return None


def fail(run: Run, placed: PlacedWorkflow, agent: Agent, kind: FailureKind, error: str) -> list[Event]:
    """The visit failed: go to `on_error`, or let the agent fail."""
    state = placed.workflow.states.get(agent.state)
    target = state.policy.on_error if state else ""
    if target:
        landing = land(placed, agent.visits, target)
        if isinstance(landing, Landing):
            return [
                AgentMoved(
                    agent=agent.id,
                    tag="on_error",
                    state=landing.state,
                    error=error,
                    instead_of=landing.instead_of,
                )
            ]
        error = f"{error}; then on_error: {landing.reason}"
    return give_up(run, placed, agent, kind, error)


def give_up(run: Run, placed: PlacedWorkflow, agent: Agent, kind: FailureKind, error: str) -> list[Event]:
    """The agent fails, which may end the wait of its parent."""
    failed: Event = AgentFailed(agent=agent.id, kind=kind, error=brief(error))
    return [failed, *_parent(run, placed, agent, failing=True)]


def finish(run: Run, placed: PlacedWorkflow, agent: Agent, text: str) -> list[Event]:
    """Return `text` to the caller; with an empty stack the agent ends."""
    if not agent.stack:
        ended: Event = AgentEnded(agent=agent.id, result=text)
        return [ended, *_parent(run, placed, agent)]
    frame = agent.stack[-1]
    landing = land(placed, frame.visits, frame.state)
    if isinstance(landing, Refusal):
        return fail(run, placed, agent, "visits", landing.reason)
    return [AgentReturned(agent=agent.id, state=landing.state, result=text, instead_of=landing.instead_of)]


def end_wait(
    run: Run, placed: PlacedWorkflow, agent: Agent, *, timed_out: bool = False, failing: bool = False
) -> list[Event]:
    """All children of `agent` have ended, or its wait timed out; `failing`: the last one fails now.

    A failure leads to `failed_next`, also after a timeout: who still runs can be waited for again, but a failure is
    collected once.
    """
    target = _after_rest(agent, timed_out)
    rest = agent.visit.rest
    if rest and rest.failed_state and (failing or any_failed(run, agent)):
        target = rest.failed_state
    landing = land(placed, agent.visits, target)
    if isinstance(landing, Refusal):
        return fail(run, placed, agent, "visits", landing.reason)
    return [WaitEnded(agent=agent.id, state=landing.state, timed_out=timed_out, instead_of=landing.instead_of)]


def end_ask(run: Run, placed: PlacedWorkflow, agent: Agent, answer: str, *, timed_out: bool = False) -> list[Event]:
    """A person answered, or nobody did in time."""
    target = _after_rest(agent, timed_out)
    landing = land(placed, agent.visits, target)
    if isinstance(landing, Refusal):
        return fail(run, placed, agent, "visits", landing.reason)
    return [
        AskEnded(
            agent=agent.id,
            state=landing.state,
            answer=answer,
            timed_out=timed_out,
            instead_of=landing.instead_of,
        )
    ]


def fail_ask(run: Run, placed: PlacedWorkflow, agent: Agent) -> list[Event]:
    """Nobody is to be asked in this run; what needs the approval of a person does not go to `on_error` without it."""
    error = f"question {agent.asks} was not answered: the run has --on-ask fail"
    if agent.visit.rest and agent.visit.rest.approve:
        return give_up(run, placed, agent, "approval", error)
    return fail(run, placed, agent, "asked", error)


def _after_rest(agent: Agent, timed_out: bool) -> str:
    rest = agent.visit.rest
    assert rest is not None, f"{agent.id} neither waits nor asks"
    return rest.timeout_state if timed_out and rest.timeout_state else rest.state


def land(placed: PlacedWorkflow, visits: Mapping[str, int], target: str) -> Landing | Refusal:
    """Where an agent that goes to `target` ends up, given its `visits`."""
    seen: list[str] = []
    while True:
        state = resolve(placed.workflow, target)
        if not isinstance(state, str):
            return state
        rules = placed.workflow.states[state].policy
        if not rules.max_visits or visits.get(state, 0) < rules.max_visits:
            return Landing(state, seen[0] if seen else "")
        if not rules.then:
            reason = f"{state} was visited {rules.max_visits} times, which is its max_visits"
            return Refusal("visits", reason)
        if state in seen:
            reason = f"the max_visits of {', '.join(seen)} are used up and their `then` form a circle"
            return Refusal("visits", reason)
        seen.append(state)
        target = rules.then


def _move(
    run: Run,
    placed: PlacedWorkflow,
    agent: Agent,
    asked: Transition,
    tag: str,
    time: float,
    places: Mapping[str, str],
    forked: int,
) -> list[Event]:
    match asked:
        case Goto() | Reset():
            return _go(run, placed, agent, asked, tag, time, places)
        case Call() | Function():
            return _go_into(run, placed, agent, asked)
        case Wait():
            return _wait(run, placed, agent, asked, time, forked)
        case Result():
            return finish(run, placed, agent, asked.text)
        case Fork() | Ask():
            raise AssertionError("a fork is handled by the transition that follows it, and nothing follows a question")
        case _:
            assert_never(asked)


def _go(
    run: Run,
    placed: PlacedWorkflow,
    agent: Agent,
    asked: Goto | Reset,
    tag: str,
    time: float,
    places: Mapping[str, str],
) -> list[Event]:
    landing = land(placed, agent.visits, asked.target)
    if not isinstance(landing, Landing):
        return fail(run, placed, agent, "visits", landing.reason)
    cd = None if isinstance(asked, Goto) else asked.cd
    fresh = cd is not None
    moved = AgentMoved(
        agent=agent.id,
        tag=tag or ("reset" if fresh else "goto"),
        state=landing.state,
        input=asked.input or "",
        fresh=fresh,
        cwd=places.get(cd, "") if cd else "",
        wake_at=time + asked.after if asked.after else ZERO,
        instead_of=landing.instead_of,
    )
    return [moved]


def _go_into(run: Run, placed: PlacedWorkflow, agent: Agent, asked: Call | Function) -> list[Event]:
    landing = land(placed, {}, asked.target)
    if isinstance(landing, Refusal):
        return fail(run, placed, agent, "visits", landing.reason)
    called = AgentCalled(
        agent=agent.id,
        tag="function" if isinstance(asked, Function) else "call",
        state=landing.state,
        then=_name(placed, asked.then),
        input=asked.input or "",
        model=asked.model if isinstance(asked, Function) else "",
        effort=asked.effort if isinstance(asked, Function) else "",
    )
    return [called]


def _wait(run: Run, placed: PlacedWorkflow, agent: Agent, asked: Wait, time: float, forked: int) -> list[Event]:
    landing = _rest(placed, agent, asked.target, asked.timeout_next, asked.failed_next)
    if isinstance(landing, Refusal):
        return fail(run, placed, agent, "visits", landing.reason)
    if asked.failed_next and not forked and any_failed(run, agent):
        failed = land(placed, agent.visits, asked.failed_next)
        landing = failed if isinstance(failed, Landing) else landing
    started = WaitStarted(
        agent=agent.id,
        state=_name(placed, asked.target),
        input=asked.input,
        deadline=time + asked.timeout if asked.timeout else ZERO,
        timeout_state=_name(placed, asked.timeout_next),
        failed_state=_name(placed, asked.failed_next),
        failures=asked.failures,
    )
    if agent.alive + forked:
        return [started]
    return [started, WaitEnded(agent=agent.id, state=landing.state, instead_of=landing.instead_of)]


def _ask(
    run: Run, placed: PlacedWorkflow, agent: Agent, asked: Ask, time: float, files: tuple[AskedFile, ...]
) -> list[Event]:
    landing = _rest(placed, agent, asked.next, asked.timeout_next)
    if isinstance(landing, Refusal):
        return fail(run, placed, agent, "visits", landing.reason)
    started = AskStarted(
        agent=agent.id,
        question=asked.question,
        state=_name(placed, asked.next),
        deadline=time + asked.timeout if asked.timeout else ZERO,
        timeout_state=_name(placed, asked.timeout_next),
        approve=asked.approve,
        number=run.questions + 1,
        choices=list(choices.parse(asked.choices)),
        files=list(files),
    )
    return [started]


def _rest(placed: PlacedWorkflow, agent: Agent, target: str, *others: str) -> Landing | Refusal:
    """Where a sleep will lead: known now, because visits do not change meanwhile."""
    landing = land(placed, agent.visits, target)
    for other in others if isinstance(landing, Landing) else ():
        found = land(placed, agent.visits, other) if other else landing
        if isinstance(found, Refusal):
            return found
    return landing


def any_failed(run: Run, agent: Agent) -> bool:
    """Whether a child that a wait of `agent` would collect now has failed."""
    children = (run.agents.get(name) for name in agent.children or ())
    return any(child is not None and child.status == FAILED for child in children)


def _forked(
    placed: PlacedWorkflow, agent: Agent, forks: Iterable[Fork], time: float, places: Mapping[str, str]
) -> Iterable[AgentStarted]:
    for number, fork in enumerate(forks, agent.forks + 1):
        state = _name(placed, fork.target)
        letters = "".join(c for c in state.rpartition(".")[0].lower() if c.isascii() and c.isalpha())[:6]
        yield AgentStarted(
            agent=f"{agent.id}_{letters or 'agent'}{number}",
            state=state,
            parent=agent.id,
            cwd=places[fork.cd] if fork.cd else agent.cwd,
            input=fork.input or "",
            variables=fork.variables,
            label=label_of(fork.variables),
            wake_at=time + fork.after if fork.after else ZERO,
        )


def _parent(run: Run, placed: PlacedWorkflow, agent: Agent, *, failing: bool = False) -> list[Event]:
    """The end of the parent's wait, if `agent` was the last child it waited for; `failing`: it fails now."""
    parent = run.agents.get(agent.parent)
    if agent.status == FAILED or not parent or agent.id not in (parent.children or ()):
        return []  # no parent waits for it
    if parent.status != WAITING or parent.alive != 1:
        return []
    return end_wait(run, placed, parent, failing=failing)


def _name(placed: PlacedWorkflow, target: str) -> str:
    """The full name of a target that is known to exist."""
    if not target:
        return ""
    state = resolve(placed.workflow, target)
    assert isinstance(state, str)
    return state


def _rendered(run: Run, placed: PlacedWorkflow, agent: Agent, asked: Transition, output: str | None) -> Transition:
    given: str | None = getattr(asked, "input", None)
    if not given:
        return asked
    more = {} if output is None else {"output": output}
    text = prompts.render(run, placed, agent, given, more)
    return asked if text == given else replace(asked, input=text)


def _misnamed(placed: PlacedWorkflow, asked: Iterable[Transition]) -> Refusal | None:
    for one in asked:
        for target in targets(one):
            state = resolve(placed.workflow, target)
            if not isinstance(state, str):
                return state
            if state in judges.of(placed.workflow):
                return Refusal("unknown_state", f"`{target}` is a judge: no agent can go there", "name another state")
    return None


def _places(asked: Iterable[Transition], directories: Mapping[str, str | Refusal]) -> dict[str, str] | Refusal:
    """Every `cd` -> its absolute directory."""
    places: dict[str, str] = {}
    for one in asked:
        if isinstance(one, (Fork, Reset)) and one.cd:
            found = directories.get(one.cd) or Refusal("directory", f'cd="{one.cd}": this directory was not checked')
            if isinstance(found, Refusal):
                return found
            places[one.cd] = found
    return places


def _crowded(run: Run, more: int) -> Refusal | None:
    if not more:
        return None
    most = run.start.max_agents
    main = run.agents.get("main")
    alive = len(run.agents) - run.failed_count - (main is not None and main.status != FAILED)
    if alive + more > most:
        return Refusal("too_many_agents", f"{more} more agents would exceed max_agents ({most})")
    return None
