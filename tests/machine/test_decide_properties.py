"""Whatever agents say and whenever it stops: the core does not raise, and does what a slow and simple model does."""

import json
import os
import random
import zlib
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from builders import Play, block, head, kind_of
from raymond.faces import documents
from raymond.faces.words import line
from raymond.language.refusal import Refusal
from raymond.machine import decide, events, evolve, schedule
from raymond.machine.agent import SCRIPTS, Agent, Conversation, Visit, backend_of
from raymond.machine.events import AgentHeld, Decision, Event, RequestTaken, RunMoved, RunStopped, StepStarted
from raymond.machine.inputs import Spending, Tick
from raymond.machine.run import Run
from raymond.store import run_snapshot
from raymond.views.status import exit_code, run_status
from reference import Reference, Said

TORTURE = os.environ.get("HYPOTHESIS_PROFILE") == "torture"
"""Many more and longer examples, for minutes."""
pytestmark = pytest.mark.timeout(3600 if TORTURE else 120)


def examples(number: int) -> settings:
    return settings(max_examples=number * 20 if TORTURE else number, deadline=None)


STATES: dict[str, dict[str, Any]] = {
    "START.md": {},
    "TWICE.md": {"max_visits": 2, "then": "ONCE", "on_error": "WORK"},
    "ONCE.md": {"max_visits": 1, "then": "TWICE.md"},
    "LAST.md": {"max_visits": 1, "on_error": "START"},
    "OTHER.md": {"backend": "codex", "retries": 0},
    "INSIDE.md": {"backend": "codex", "in_place": True},
    "OPUS.md": {"model": "opus"},
    "CHEAP.md": {"budget": 0.6},
    "ASKS.md": {"on_denied": "pause", "model": "opus"},
    "ONLY.md": {"allowed": [{"tag": "goto", "target": "START.md"}], "on_error": "LAST"},
    "FORCED.md": {"allowed": [{"tag": "result", "payload": "forced"}], "force_implicit": True},
    "SPLIT.md": {"allowed": [{"tag": "fork", "target": "WORK", "next": "OTHER", "cd": "sub"}]},
    "EITHER.md": {"allowed": [{"tag": "goto", "target": "TWICE"}, {"tag": "result"}, {"tag": "fork"}, {"tag": "wait"}]},
    "ANY.md": {"allowed": [{"tag": "goto"}, {"tag": "fork"}, {"tag": "wait", "failures": "ok"}, {"tag": "call"}]},
    "WORK.sh": {},
    "TRY.py": {"on_error": "START", "retries": 1, "max_visits": 2},
    "LOOP.sh": {"max_visits": 2, "then": "START.md"},
}
OFTEN = "START START TWICE ONCE LAST LAST LAST OTHER OTHER WORK WORK TRY OPUS OPUS CHEAP ASKS".split()
DIRECTORIES: dict[str, str | Refusal] = {
    "sub": "/project/sub",
    "deep": "/project/sub/deep",
    "bad": Refusal("directory", "there is no such directory"),
}


def files(states: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The texts of a workflow with these policies."""
    made = {}
    for name, policy in states.items():
        keys = {"allowed_transitions" if key == "allowed" else key: value for key, value in policy.items()}
        yaml = "\n".join(f"{key}: {json.dumps(value)}" for key, value in keys.items())
        made[name] = head(yaml) if name.endswith(".md") else block(yaml) if yaml else ""
    return made


FILES = files(STATES)


# What agents say: long tables, so that one choice is one sentence and hypothesis can go far


CHANCE = random.Random(7)
NAMES = [*STATES, *OFTEN]
INPUTS = ["", "given", "{{visit}} of {{agent_id}}", "again {{input}}", "{{unbound}}"]
TIMES = ["10s", "5m"]


def tag(name: str, **fields: Any) -> dict[str, Any]:
    """A tag; what is None is left out, and a `timeout_next` without `timeout`."""
    made = {"tag": name, **{key: value for key, value in fields.items() if value is not None}}
    return {key: value for key, value in made.items() if key != "timeout_next" or "timeout" in made}


def target() -> str:
    return CHANCE.choice(NAMES) if CHANCE.random() < 0.98 else "NOPE"


def maybe(values: list[str], chance: float = 0.3) -> str | None:
    return CHANCE.choice(values) if CHANCE.random() < chance else None


def move() -> Said:
    name = CHANCE.choice(["goto", "goto", "reset", "call", "function", "result"])
    given, after = maybe(INPUTS), maybe(TIMES, 0.2)
    if name == "result":
        return [tag(name, payload=CHANCE.choice(["", "done", "<goto>START</goto>"]))]
    if name == "goto":
        return [goto()]
    if name == "reset":
        return [tag(name, target=target(), input=given, after=after, cd=maybe(["sub", "deep", "sub", "bad"]))]
    model = maybe(["small", "large"]) if name == "function" else None
    return [tag(name, target=target(), **{"return": target()}, input=given, model=model)]


def goto() -> dict[str, Any]:
    return tag("goto", target=target(), input=maybe(INPUTS), after=maybe(TIMES, 0.2))


def wait() -> dict[str, Any]:
    late, bad, fine = maybe([target()], 0.5), maybe([target()], 0.3), maybe(["ok"], 0.2)
    found = tag("wait", target=target(), input=maybe(INPUTS), timeout=maybe(TIMES, 0.4), timeout_next=late)
    return found | tag("wait", failed_next=bad, failures=fine)


def ask() -> dict[str, Any]:
    return tag("ask", payload="why?", next=target(), timeout=maybe(TIMES, 0.5), timeout_next=maybe([target()], 0.5))


def fork(on: str | None = None) -> dict[str, Any]:
    cd, item = maybe(["sub", "deep", "sub", "bad"], 0.2), maybe(["1", "two"])
    return tag("fork", target=target(), next=on, input=maybe(INPUTS), after=maybe(TIMES, 0.15), cd=cd, item=item)


def forks() -> Said:
    number = CHANCE.choice([1, 1, 2, 3])
    if CHANCE.random() < 0.4:
        on = target()
        return [fork(on) for _ in range(number)]
    return [*(fork() for _ in range(number)), CHANCE.choice([goto, wait, wait])()]


def nonsense() -> Said:
    makers: list[Callable[[], dict[str, Any]]] = [goto, wait, ask, fork, lambda: fork(target())]
    return [CHANCE.choice(makers)() for _ in range(CHANCE.choice([0, 0, 2, 3]))]


MOVES = st.sampled_from([move() for _ in range(400)])
FORKS = st.sampled_from([forks() for _ in range(400)])
RESTS = st.sampled_from([[CHANCE.choice([wait, ask])()] for _ in range(200)])
NONSENSE = st.sampled_from([nonsense() for _ in range(100)])
WHO = st.integers(0, 21)
COSTS = st.sampled_from([0.0, 0.0, 0.25, 0.5])
TEXTS = st.sampled_from(["", "said"])
RARE = "cut cut cut twice paused signal stop limits limits turns unlimited move result give_up retry answer".split()
DENIED = st.sampled_from([(), (), (), ("Edit",), ("Bash(git:*)", "Edit")])
STATE = st.sampled_from([*NAMES, "NOPE"])


def written(said: Said) -> str:
    """The tags as text, with talk between them."""
    text = ["I did it."]
    for one in said:
        rest = "".join(f' {key}="{value}"' for key, value in one.items() if key not in ("tag", "target", "payload"))
        text.append(f"<{one['tag']}{rest}>{one.get('target', one.get('payload'))}</{one['tag']}>")
    return "\n".join(text)


FAILURES = [
    "crash",
    "silent",
    "context",
    "refusal",
    "overload",
    "overload",
    "limit",
    "limit of the model",
    "limit of the model",
    "cap",
    "cap",
    "cap",
    "session",
    "auth",
    "billing",
    "time",
    "setup",
]
SCRIPT_FAILURES = ["script", "crash", "silent", "time"]


# One machine beside another


def pooled(real: Run, names: Sequence[str]) -> dict[str, list[str]]:
    """Names by the pool they wait for."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(real.agents[name].pool, []).append(name)
    return found


def talk(conversation: Conversation | None) -> tuple[str, str, tuple[int, ...]] | None:
    return (conversation.backend, conversation.session, conversation.meter) if conversation else None


def talk_of(agent: dict[str, Any]) -> tuple[str, str, tuple[int, ...]] | None:
    return (agent["backend"], agent["session"], agent["meter"]) if agent["session"] else None


def told(visit: Visit) -> str:
    """Why the next turn is not the prompt of the visit; empty when it is."""
    return visit.reminded_for if visit.reminder or visit.reminded_for != "rejected" else ""


def of_real(agent: Agent) -> dict[str, Any]:
    """What an agent is, in words both machines have."""
    results = None
    if agent.visit.results is not None:
        results = [(one.agent, one.state, one.status, one.result) for one in agent.visit.results]
    return {
        "state": agent.state,
        "status": agent.status,
        "parent": agent.parent,
        "cwd": agent.cwd,
        "conversation": talk(agent.conversation),
        "model": agent.model,
        "held": agent.visit.held,
        "told": told(agent.visit),
        "visit_cost": agent.visit.cost,
        "frames": [(one.state, talk(one.conversation), one.cwd, one.visits, one.model) for one in agent.stack or ()],
        "variables": agent.variables or {},
        "visits": agent.visits,
        "input": agent.visit.input,
        "results": results,
        "results_are_input": agent.visit.results_are_input,
        "has a cause": bool(agent.visit.cause),
        "stuck": agent.visit.stuck.kind if agent.visit.stuck else "",
        "attempt": agent.visit.attempt,
        "failures": agent.visit.failures,
        "reminders": agent.visit.reminders,
        "freshened": agent.visit.freshened,
        "wake": agent.visit.wake_at,
        "forked": list(agent.children or ()),
        "forks": agent.forks,
    }


def of_reference(agent: dict[str, Any]) -> dict[str, Any]:
    results = None
    if agent["results"] is not None:
        results = [(one["agent"], one["state"], one["status"], one["result"]) for one in agent["results"]]
    same = "state status parent cwd model variables visits input results_are_input attempt failures reminders".split()
    same += "freshened wake forked forks held told visit_cost".split()
    return {
        **{key: agent[key] for key in same},
        "conversation": talk_of(agent),
        "frames": [
            (
                one["state"],
                talk_of(one),
                one["cwd"],
                one["visits"],
                one["model"],
            )
            for one in agent["frames"]
        ],
        "results": results,
        "has a cause": bool(agent["cause"]),
        "stuck": agent["failed_for"],
    }


def plain(real: Run) -> Any:
    """A run as values that can be compared."""
    return msgspec.to_builtins(real, enc_hook=list)


def unpacked(real: Run) -> Run:
    """The run after a stay in a snapshot."""
    kept = run_snapshot.unpack(run_snapshot.pack(0, b"", real))
    assert kept is not None
    return kept.run


class Machine(RuleBasedStateMachine):
    """The real core and the reference are told the same; after each rule they must agree."""

    @initialize(
        most=st.sampled_from([0, 0, 0, 12]),
        budget=st.sampled_from([0.0, 0.0, 0.37, 20.0, 20.0]),
        turns=st.sampled_from([0, 0, 0, 0, 20]),
        forks=FORKS,
    )
    def start(self, most: int, budget: float, turns: int, forks: Said) -> None:
        self.play = Play(
            FILES,
            input="begin",
            max_turns_at_once=3,
            max_scripts_at_once=2,
            max_agents=6,
            max_wait=1000.0,
            patience=200.0,
            max_iterations=most,
            budget=budget,
            max_turns=turns,
            in_place=["codex"],
        )
        limits = {"input": "begin", "turns": 3, "scripts": 2, "agents": 6, "max_wait": 1000.0, "patience": 200.0}
        limits |= {"max_iterations": most, "budget": budget, "max_turns": turns, "in_place": ["codex"]}
        self.reference = Reference(STATES, "START.md", limits)
        self.reference.now = self.play.now
        self.sessions: set[str] = set()
        self.taken: list[tuple[str, Any, dict[str, Any]]] = []
        self.kept: list[Decision] = []
        self.says(0, forks, 0.0)

    @precondition(lambda self: self.play.run.final_status == "completed")
    @rule(forks=FORKS)
    def another_run_starts(self, forks: Said) -> None:
        self.teardown()
        self.start(0, 0.0, 0, forks)

    # steps

    def named(self, status: str) -> list[str]:
        return [agent.id for agent in self.play.run.agents.values() if agent.status == status]

    def can_step(self) -> list[str]:
        return [*self.named("running"), *schedule.owed(self.play.run)]

    def begin_one(self, name: str) -> bool:
        """Whether the step of an agent that is owed began; it may wait for its model instead."""
        started = self.play.begin(name)
        session = started.session if isinstance(started, StepStarted) else ""
        expected = self.reference.begin(name, session)
        if not isinstance(started, StepStarted):
            assert started == AgentHeld(agent=name, pool=expected["held"])
            return False
        assert not session or session not in self.sessions
        self.sessions.add(session)
        assert (started.base, started.model) == (expected["base"], expected["model"])
        assert (started.step, started.attempt) == (expected["step"], expected["attempt"])
        assert not started.backend or started.turn == expected["turn"]
        assert started.cap == pytest.approx(expected["cap"], abs=0.0001)
        assert bool(started.cap) == bool(expected["cap"])
        self.reference.agents[name]["cap"] = started.cap
        return True

    def stepping(self, who: int) -> str:
        """An agent whose step runs; it begins when it does not. Nobody when it waits for its model instead."""
        names = self.can_step()
        name = names[who % len(names)]
        if self.play.agent(name).status != "running" and not self.begin_one(name):
            return ""
        return name

    def says(self, who: int, said: Said, cost: float, denied: tuple[str, ...] = ()) -> None:
        name = self.stepping(who)
        if not name:
            return
        agent = self.play.agent(name)
        if agent.visit.results_are_input:
            said = [{**one, "input": "given"} if "input" in one else one for one in said]
        turn = agent.pool != SCRIPTS
        more: dict[str, Any] = {"denied": denied, "meter": (agent.step, who), "unknown": not cost} if turn else {}
        self.play.say(written(said), name, cds=DIRECTORIES, cost=cost, **more)
        self.reference.output(name, said, cost, DIRECTORIES, **more)

    @precondition(lambda self: bool(schedule.owed(self.play.run)))
    @rule()
    def every_owed_step_begins(self) -> None:
        while names := schedule.owed(self.play.run):
            self.begin_one(names[0])
            self.both_owe_the_same_steps()

    @precondition(lambda self: bool(self.can_step()))
    @rule(who=WHO, said=MOVES, cost=COSTS, denied=DENIED)
    def an_agent_moves(self, who: int, said: Said, cost: float, denied: tuple[str, ...]) -> None:
        self.says(who, said, cost, denied)

    @precondition(lambda self: bool(self.can_step()))
    @rule(first=MOVES, second=MOVES, third=FORKS)
    def everybody_goes_on(self, first: Said, second: Said, third: Said) -> None:
        for number, name in enumerate(self.can_step()):
            if name in self.can_step():
                self.says(self.can_step().index(name), [first, second, third][number % 3], 0.0)

    @precondition(lambda self: bool(self.can_step()))
    @rule(who=WHO, said=FORKS, cost=COSTS)
    def an_agent_forks(self, who: int, said: Said, cost: float) -> None:
        self.says(who, said, cost)

    @precondition(lambda self: bool(self.can_step()))
    @rule(who=WHO, said=RESTS, cost=COSTS)
    def an_agent_rests(self, who: int, said: Said, cost: float) -> None:
        self.says(who, said, cost)

    @precondition(lambda self: bool(self.can_step()))
    @rule(who=WHO, said=NONSENSE, cost=COSTS, times=st.sampled_from([1, 1, 4]))
    def an_agent_talks_nonsense(self, who: int, said: Said, cost: float, times: int) -> None:
        for _ in range(times):
            if self.can_step():
                self.says(who, said, cost)

    @precondition(lambda self: bool(self.can_step()))
    @rule(who=WHO, what=WHO, cost=COSTS, retry_in=st.sampled_from([-5.0, 0.0, 0.0, 30.0, 2000.0]))
    def a_step_fails(self, who: int, what: int, cost: float, retry_in: float) -> None:
        name = self.stepping(who)
        if name:
            self.fails(name, what, cost, retry_in)

    def fails(self, name: str, what: int, cost: float, retry_in: float) -> None:
        kinds = SCRIPT_FAILURES if self.play.agent(name).pool == SCRIPTS else FAILURES
        kind, _, only_model = kinds[what % len(kinds)].partition(" ")
        if kind == "cap" and cost:
            cost = round(self.play.agent(name).cap + cost - 0.25, 4)
        retry_at = self.play.now + retry_in if retry_in else 0.0
        given: dict[str, Any] = {"only_model": bool(only_model)}
        self.play.fail(kind_of(kind), name, spent=Spending(cost=cost, meter=(what,)), retry_at=retry_at, **given)
        self.reference.failure(name, kind, cost, retry_at, meter=(what,), **given)

    @precondition(lambda self: len(self.named("running")) > 1)
    @rule(first=WHO, second=WHO)
    def every_running_step_fails(self, first: int, second: int) -> None:
        for number, name in enumerate(self.named("running")):
            self.fails(name, [first, second][number % 2], 0.0, 0.0)

    @precondition(lambda self: self.play.run.limits.budget and self.can_step())
    @rule(times=st.sampled_from([1, 4, 12]))
    def everybody_wants_it_all(self, times: int) -> None:
        """Turns that cost all they may, one after the other."""
        for number in range(times):
            names = self.turns()
            name = self.stepping(self.can_step().index(names[number % len(names)])) if names else ""
            if name:
                self.fails(name, FAILURES.index("cap"), 0.25, 0.0)

    def turns(self) -> list[str]:
        return [name for name in self.can_step() if self.play.agent(name).pool != SCRIPTS]

    @precondition(lambda self: bool(self.turns()))
    @rule(who=WHO, retry_in=st.sampled_from([0.0, 30.0]))
    def a_model_closes_and_those_that_need_it_wait(self, who: int, retry_in: float) -> None:
        names = self.turns()
        name = self.stepping(self.can_step().index(names[who % len(names)]))
        if name:
            self.fails(name, FAILURES.index("limit of the model"), 0.0, retry_in)
            self.every_owed_step_begins()

    @precondition(lambda self: any("/" in pool for pool in self.play.run.closed))
    @rule(who=WHO, said=MOVES, again=st.booleans())
    def a_closed_model_is_tried(self, who: int, said: Said, again: bool) -> None:
        """Its time comes; whoever tries it says something, or finds it closed."""
        times = [closed.until for pool, closed in self.play.run.closed.items() if "/" in pool]
        self.time_passes(max(0.0, min(times) - self.play.now))
        self.every_owed_step_begins()
        tries = [name for name in self.named("running") if "/" in self.play.agent(name).pool]
        if tries and again:
            self.fails(tries[who % len(tries)], FAILURES.index("limit of the model"), 0.0, 30.0)
        elif tries:
            self.says(self.can_step().index(tries[who % len(tries)]), said, 0.0)

    @precondition(lambda self: self.named("running"))
    @rule(who=WHO)
    def a_backend_names_its_conversation(self, who: int) -> None:
        names = [name for name in self.named("running") if self.play.agent(name).pool != SCRIPTS]
        if names:
            name = names[who % len(names)]
            own = f"own {len(self.play.decisions)}"
            self.play.name(own, name)
            self.reference.named(name, own)

    # time and people

    @precondition(lambda self: bool(schedule.wake_at(self.play.run)) or not self.can_step())
    @rule(seconds=st.sampled_from([0.0, 1.0, 5.0, 15.0, 60.0, 300.0, 1000.0, -1.0, -100.0]))
    def time_passes(self, seconds: float) -> None:
        self.play.now += seconds
        while decided := decide.decide(self.play.run, self.play.workspace, Tick(time=self.play.now)):
            assert schedule.due(self.play.run, self.play.now)
            self.play.commit(decided)
            assert len(self.play.decisions) < 2000, "time does not end"
        self.reference.tick(self.play.now)

    def stuck(self) -> list[str]:
        words = ("asking", "waiting", "sleeping", "paused", "failed")
        return [agent.id for agent in self.play.run.agents.values() if agent.status in words]

    @precondition(lambda self: bool(self.stuck()))
    @rule(kind=st.sampled_from(["answer", "retry", "move", "give_up", "result"]), who=WHO, text=TEXTS, state=STATE)
    def a_person_asks_for_an_agent(self, kind: Any, who: int, text: str, state: str) -> None:
        agents = self.play.run.agents.values()
        fitting = {"answer": ["asking"], "retry": ["failed", "paused"]}.get(kind, ["waiting", "sleeping", "failed"])
        names = [agent.id for agent in agents if agent.status in fitting] or list(self.play.run.agents)
        names = [*reversed(names), ""] if kind == "answer" else [*reversed(names), "ghost"]
        wanted = {"agent": names[who % len(names)], "text": text}
        self.request(kind, wanted | ({"state": state} if kind == "move" else {}))

    def request(self, kind: Any, wanted: dict[str, Any]) -> None:
        id = f"r{len(self.taken)}"
        self.taken.append((id, kind, wanted))
        taken = self.play.ask(kind, id=id, **wanted)[0]
        assert isinstance(taken, RequestTaken)
        assert self.reference.request(id, kind, wanted) == (taken.problem == "")

    @rule(what=st.sampled_from(RARE), which=WHO)
    def something_rare_happens(self, what: str, which: int) -> None:
        match what:
            case "cut" if self.can_step():
                name = self.stepping(which)
                if name:
                    self.play.interrupt(name, cost=0.25)
                    self.reference.interruption(name, 0.25)
            case "twice" if self.taken:
                id, kind, wanted = self.taken[which % len(self.taken)]
                assert self.play.ask(kind, id=id, **wanted) == []
            case "paused" | "signal":
                self.play.stop(RunStopped(kind=what))
                self.reference.stop(what)
            case "stop":
                self.request("stop", {})
            case "move" | "result" | "give_up" | "retry" | "answer":
                names = ["ghost", *self.play.run.agents]
                wanted = {"agent": names[which % len(names)], "text": "said"}
                self.request(what, wanted | ({"state": "LOOP"} if what == "move" else {}))
            case "limits":
                self.limit(budget=self.play.run.cost + which / 4)
            case "turns":
                self.limit(max_turns=self.play.run.turns + which, allowed_tools=["Edit"])
            case "unlimited":
                self.limit(budget=0.0, max_iterations=0, max_turns=0)
            case _:
                pass  # there is nothing to cut, or nothing to take twice

    def limit(self, **changed: Any) -> None:
        known: dict[str, Any] = {"budget": None, "max_iterations": None, "max_turns": None, "allowed_tools": []}
        self.request("limits", known | changed)

    @precondition(lambda self: self.play.run.stop or self.play.run.final_status or self.play.run.closed)
    @rule(at_once=st.booleans(), fresh=st.booleans())
    def the_run_is_resumed(self, at_once: bool, fresh: bool) -> None:
        # What follows when nobody had stopped it is another matter (driver_died).
        at_once = at_once or not (self.play.run.stop or self.play.run.final_status)
        # So is what follows when the clock was set back meanwhile (ClockSet).
        self.time_passes(max(0.0, max(self.play.run.now, self.play.run.driven_until) - self.play.now))
        self.play.resume(at_once=at_once, fresh=fresh)
        self.reference.resume(at_once=at_once, fresh=fresh)

    # what must hold

    @invariant()
    def both_have_the_same_agents(self) -> None:
        real, slow = self.play.run, self.reference
        assert list(real.agents) == list(slow.agents)
        for name, agent in real.agents.items():
            assert of_real(agent) == of_reference(slow.agents[name])
        assert real.started == len(slow.agents) + len(slow.outcomes)
        assert real.lost == sum(one["status"] == "failed" for one in slow.outcomes.values())

    @invariant()
    def both_have_the_same_results(self) -> None:
        found = {
            one.agent: {"status": one.status, "state": one.state, "result": one.result}
            for one in self.play.run.outcomes.values()
        }
        assert found == self.reference.outcomes

    @invariant()
    def both_owe_the_same_steps(self) -> None:
        real = self.play.run
        assert pooled(real, schedule.owed(real)) == self.reference.owed()

    @invariant()
    def both_have_the_same_backends_times_and_words(self) -> None:
        real, slow = self.play.run, self.reference
        closed = {
            name: {"kind": one.kind, "until": one.until, "tries": one.tries, "since": one.since}
            for name, one in real.closed.items()
        }
        assert closed == {
            name: {key: one[key] for key in ("kind", "until", "tries", "since")} for name, one in slow.closed.items()
        }
        assert set(real.probing) == {name for name, one in slow.closed.items() if one["probing"]}
        assert schedule.wake_at(real) == slow.due()
        assert (real.iterations, real.cost, real.steps) == (slow.iterations, slow.cost, slow.steps)
        assert (real.turns, real.unpriced, list(real.rights.allowed)) == (slow.turns, slow.unpriced, slow.tools)
        assert real.denied == {tool: slow.denied.count(tool) for tool in slow.denied}
        assert (real.stop.kind if real.stop else "", real.final_status) == (slow.stopped, slow.ended)
        assert (real.stop.limit if real.stop else "") == slow.stopped_at
        assert (run_status(real), exit_code(real)) == (slow.status(), slow.exit_code())

    @invariant()
    def every_count_is_what_counting_gives(self) -> None:
        real = self.play.run
        agents = list(real.agents.values())
        words = [agent.status for agent in agents]
        assert {word: n for word, n in real.statuses.items() if n} == {word: words.count(word) for word in set(words)}
        assert "deciding" not in words
        running = [agent.pool for agent in agents if agent.status == "running"]
        assert {pool: n for pool, n in real.running.items() if n} == {pool: running.count(pool) for pool in running}
        ready = sorted(agent.id for agent in agents if agent.status == "ready")
        assert sorted(name for queue in real.ready.values() for name in queue) == ready
        assert all(real.agents[name].pool == pool for pool, queue in real.ready.items() for name in queue)
        assert real.failed_count == words.count("failed")
        assert real.reserved == pytest.approx(sum(agent.cap for agent in agents))
        assert all(not agent.cap for agent in agents if agent.status != "running")
        assert real.reserved or not any(agent.cap for agent in agents)
        assert not real.reserved or any(agent.cap for agent in agents), "a crumb is reserved"
        for agent in agents:
            children = [real.agents[name] for name in agent.children or () if name in real.agents]
            assert agent.alive == sum(child.status != "failed" for child in children)

    @invariant()
    def somebody_goes_on(self) -> None:
        """Nothing waits for ever: for money that nobody will give back, or in a queue that nobody looks at."""
        real = self.play.run
        words = [agent.status for agent in real.agents.values()]
        if real.stop or real.final_status or "running" in words or "ready" not in words or schedule.wake_at(real):
            return
        shut = [pool for pool, closed in real.closed.items() if not closed.until and pool not in real.probing]
        waits = [agent.pool for agent in real.agents.values() if agent.status == "ready"]
        over = bool(real.limits.max_turns) and real.turns >= (real.limits.max_turns or 0) and "scripts" not in waits
        assert schedule.owed(real) or over or all(backend_of(pool) in shut for pool in waits)

    @invariant()
    def folding_all_events_gives_the_run(self) -> None:
        for decision in self.play.decisions[len(self.kept) :]:
            written = events.encode(decision)
            assert b"raymond " not in written, "facts stand in a journal, not commands"
            self.kept.append(msgspec.json.decode(written, type=Decision))
            assert self.kept[-1] == decision
        assert plain(evolve.fold(self.kept)) == plain(self.play.run)

    def teardown(self) -> None:
        """Cut anywhere, keep a snapshot, fold the rest: the same run."""
        if not hasattr(self, "play"):
            return
        decisions = self.play.decisions
        whole = plain(self.play.run)
        early = Run()
        for cut, decision in enumerate(decisions, 1):
            evolve.apply(early, decision)
            kept = unpacked(early)
            assert plain(kept) == plain(early)
            if cut % 7 == 0:
                assert plain(evolve.fold(decisions[cut:], kept)) == whole


Machine.TestCase.settings = settings(max_examples=20, stateful_step_count=50, deadline=None)
TestTheCoreAndAReferenceAgree = Machine.TestCase


@pytest.mark.slow
def test_the_core_and_a_reference_agree_for_long() -> None:
    number, steps = (2000, 100) if TORTURE else (120, 50)
    long = settings(max_examples=number, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(Machine, settings=long)


# Whatever is said


PIECES = [
    *("<goto>", "</goto>", "<reset cd='sub'>", "</reset>", '<call return="START">', "</call>", "<result>", "</result>"),
    *(
        '<function return="WORK" model="m">',
        "</function>",
        "<fork next='START'>",
        "<fork>",
        "</fork>",
        "<wait>",
        "</wait>",
    ),
    *(
        "<wait timeout='5m'>",
        "<wait timeout='x'>",
        '<ask next="START">',
        "</ask>",
        "<print>",
        "</print>",
        "<fork cd='no'>",
    ),
    *(
        "<goto after='1h' input='{{input}}'>",
        "<goto input='{{results}}{{error}}'>",
        "<goto nonsense='1'>",
        "<goto",
        "```",
    ),
    *(
        "START",
        "WORK.sh",
        "LAST",
        "ONCE",
        "SPLIT.md",
        "NOPE",
        "../x",
        "\0",
        "{{input}}",
        "`",
        "<!--",
        "-->",
        "\n",
        " ",
        "é",
    ),
]
TEXT = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))


@given(st.sampled_from(sorted(STATES)), st.lists(TEXT, min_size=1, max_size=5), st.text(max_size=20))
@examples(150)
def test_whatever_an_agent_says_the_core_decides(state: str, texts: list[str], input: str) -> None:
    play = Play(FILES, input=input)
    play.ask("move", agent="main", state=state, text=input)
    for text in texts:
        for name in schedule.owed(play.run):
            play.say(text, name, cds={"sub": "/project/sub"} if "sub" in text else {})
        play.pass_time(400.0)
    assert plain(evolve.fold(play.decisions)) == plain(play.run)
    assert "deciding" not in play.statuses().values()
    documents.state_file(play.run)
    assert [line(event) for event in play.events]


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
@examples(100)
def test_whatever_a_person_asks_the_core_answers(agent: str, state: str, text: str) -> None:
    play = Play(FILES)
    for kind in ("answer", "stop", "retry", "move", "result", "give_up", "limits"):
        play.ask(kind, agent=agent, state=state, text=text)
    assert play.statuses() == {"main": "ready"} or agent == "main"


# Events on their way to the disk and back


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=20),
        int: st.integers(-(2**53), 2**53),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
        object: st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text(max_size=9)
        | st.lists(st.text(max_size=3)),
    }
    if kind in simple:
        return simple[kind]
    inner = [values(one) for one in get_args(kind)]
    if get_origin(kind) is dict:
        return st.dictionaries(*inner, max_size=3)
    if get_origin(kind) is list:
        return st.lists(*inner, max_size=3)
    if get_origin(kind) is tuple:
        return st.lists(inner[0], max_size=3).map(tuple)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return st.builds(kind, **{name: values(hint) for name, hint in get_type_hints(kind).items()})
    return st.one_of(inner)


EVENTS = [
    st.builds(kind, **{name: values(hint) for name, hint in get_type_hints(kind).items()}) for kind in get_args(Event)
]


@given(st.integers(1, 2**53), values(float), st.lists(st.one_of(EVENTS), min_size=1, max_size=4))
@examples(150)
def test_every_event_comes_back_from_its_line_as_it_was(seq: int, time: float, happened: list[Event]) -> None:
    decision = Decision(seq=seq, time=time, events=happened)
    assert msgspec.json.decode(events.encode(decision), type=Decision) == decision


# Cut anywhere


def reply(agent: Agent, said: list[Said]) -> str:
    """What an agent says in a visit: the same in every attempt, and in the end always a result."""
    chosen = said[zlib.crc32(f"{agent.id} {agent.entered}".encode()) % len(said)]
    over = agent.entered > 5 or (agent.parent and chosen[0]["tag"] == "fork")
    return f"<result>{agent.id} {agent.entered}</result>" if over else written(chosen)


def drive(play: Play, said: list[Said], decisions: int = 1000) -> None:
    """Do what is owed until the run ends, or until it has decided so often."""
    while not play.run.final_status and len(play.decisions) < decisions:
        play.pass_time(0.0 if schedule.owed(play.run) else 300.0)
        for name in schedule.owed(play.run):
            if len(play.decisions) < decisions:
                play.begin(name)
        for agent in list(play.run.agents.values()):
            if agent.status == "running" and len(play.decisions) < decisions:
                play.say(reply(agent, said), agent.id, cds=DIRECTORIES)
            elif agent.status == "asking":
                play.ask("answer", id=f"{agent.id} {agent.entered}", agent=agent.id, text="because")


def plainly(said: Said) -> Said:
    """Nothing that fails or is refused, and no timeouts: they are about time and not about work."""

    def plainer(key: str, value: str) -> str:
        if key in ("target", "next", "return", "failed_next"):
            return ["START", "OTHER", "WORK"][len(value) % 3]
        return "sub" if key == "cd" else value

    return [{key: plainer(key, value) for key, value in one.items() if "timeout" not in key} for one in said]


@pytest.mark.slow
@given(st.lists((MOVES | FORKS | RESTS).map(plainly), min_size=1, max_size=6), st.integers(2, 60))
@examples(100)
def test_cut_after_any_decision_and_resumed_a_run_ends_the_same(said: list[Said], cut: int) -> None:
    whole = Play(FILES)
    drive(whole, said)
    assert whole.run.final_status == "completed"
    play = Play(FILES)
    drive(play, said, cut)
    play.run = unpacked(evolve.fold(play.decisions))
    play.resume()
    for agent in list(play.run.agents.values()):
        if agent.status == "running":
            play.interrupt(agent.id)
    drive(play, said)
    assert play.run.final_status == whole.run.final_status
    assert play.run.outcomes == whole.run.outcomes


@pytest.mark.slow
@given(st.lists((MOVES | FORKS | RESTS).map(plainly), min_size=1, max_size=6), st.integers(2, 60), st.data())
@examples(100)
def test_moved_after_any_decision_a_run_ends_the_same_and_no_agent_stays_behind(
    said: list[Said], cut: int, data: st.DataObject
) -> None:
    whole = Play(FILES)
    drive(whole, said)
    play = Play(FILES, cwd="/project")
    drive(play, said, cut)
    for agent in list(play.run.agents.values()):
        if agent.status == "running":
            play.interrupt(agent.id)
    sessions = sorted({agent.session for agent in play.run.agents.values()} - {""})
    lost = data.draw(st.lists(st.sampled_from(sessions), unique=True)) if sessions else []
    play.commit([RunMoved(cwd="/new", before="/project", after="/new", lost=lost)])
    play.run = unpacked(evolve.fold(play.decisions))
    for agent in play.run.agents.values():
        assert agent.session not in lost
        for cwd in (agent.cwd, *(frame.cwd for frame in agent.stack or ())):
            assert f"{cwd}/".startswith("/new/") or not cwd
    play.resume()
    drive(play, said)
    assert play.run.final_status == whole.run.final_status
    assert play.run.outcomes == whole.run.outcomes
