"""Whatever agents say and whenever it stops: the core does not raise, and does what a slow and simple model does."""

import json
import os
from collections.abc import Sequence
from typing import Any, get_args, get_type_hints

import msgspec
from builders import KEY, Play, block, head
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from reference import Reference, Said

from raymond import core, events, journal, run, tags, views
from raymond.agent import SCRIPTS, Agent
from raymond.core import Failure, Interruption, Output, Spending, Tick
from raymond.events import Decision, Event, RequestTaken, StepStarted
from raymond.run import Run

TORTURE = os.environ.get("HYPOTHESIS_PROFILE") == "torture"


def examples(number: int) -> settings:
    return settings(max_examples=number * 20 if TORTURE else number, deadline=None)


STATES: dict[str, dict[str, Any]] = {
    "START.md": {},
    "TWICE.md": {"max_visits": 2, "then": "ONCE"},
    "ONCE.md": {"max_visits": 1, "then": "TWICE.md"},
    "LAST.md": {"max_visits": 1, "on_error": "START"},
    "FEW.md": {"max_visits": 2, "retries": 0},
    "OTHER.md": {"backend": "codex"},
    "ONLY.md": {"allowed": [{"tag": "goto", "target": "START.md"}], "on_error": "LAST"},
    "FORCED.md": {"allowed": [{"tag": "result", "payload": "forced"}], "force_implicit": True},
    "SPLIT.md": {"allowed": [{"tag": "fork", "target": "WORK", "next": "OTHER", "cd": "sub"}]},
    "EITHER.md": {"allowed": [{"tag": "goto", "target": "TWICE"}, {"tag": "result"}, {"tag": "fork"}, {"tag": "wait"}]},
    "WORK.sh": {},
    "TRY.py": {"on_error": "START", "retries": 1},
    "LOOP.sh": {"max_visits": 2, "then": "START.md"},
    "1_2.sh": {},
}
DIRECTORIES = {"sub": "/work/sub", "deep": "/work/sub/deep", "bad": "!there is no such directory"}


def files(states: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The texts of a workflow with these policies."""
    made = {}
    for name, policy in states.items():
        keys = {"allowed_transitions" if key == "allowed" else key: value for key, value in policy.items()}
        yaml = "\n".join(f"{key}: {json.dumps(value)}" for key, value in keys.items())
        made[name] = head(yaml) if name.endswith(".md") else block(yaml) if yaml else ""
    return made


FILES = files(STATES)


# What agents say


TARGETS = st.sampled_from([*STATES, *STATES, *(name.partition(".")[0] for name in STATES), "NOPE"])
INPUTS = st.sampled_from([None, None, "", "given", "{{visit}} of {{agent_id}}", "again {{input}}", "{{unbound}}"])
TIMES = st.sampled_from([None, None, None, "10s", "5m"])
CDS = st.sampled_from([None, None, "sub", "deep", "bad"])


def tag(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A tag; what is None is left out."""
    made = st.fixed_dictionaries({"tag": st.just(name), **fields})
    return made.map(lambda one: {key: value for key, value in one.items() if value is not None})


def timed(fields: dict[str, Any]) -> dict[str, Any]:
    """`timeout_next` cannot stand without `timeout`."""
    return {key: value for key, value in fields.items() if key != "timeout_next" or "timeout" in fields}


GOTO = tag("goto", target=TARGETS, input=INPUTS, after=TIMES)
WAIT = tag("wait", target=TARGETS, input=INPUTS, timeout=TIMES, timeout_next=st.none() | TARGETS).map(timed)
ASK = tag("ask", payload=st.just("why?"), next=TARGETS, timeout=TIMES, timeout_next=st.none() | TARGETS).map(timed)
FORK = tag("fork", target=TARGETS, input=INPUTS, after=TIMES, cd=CDS, item=st.sampled_from([None, "1", "two"]))
FORKS = st.lists(FORK, min_size=1, max_size=3)


def going_on(forks: Said, on: Any) -> Said:
    return [*forks, on] if isinstance(on, dict) else [{**fork, "next": on} for fork in forks]


SAID: st.SearchStrategy[Said] = st.one_of(
    GOTO.map(lambda one: [one]),
    tag("reset", target=TARGETS, input=INPUTS, after=TIMES, cd=CDS).map(lambda one: [one]),
    tag("call", target=TARGETS, **{"return": TARGETS}, input=INPUTS).map(lambda one: [one]),
    tag("function", target=TARGETS, **{"return": TARGETS}, input=INPUTS, model=st.sampled_from([None, "small"])).map(
        lambda one: [one]
    ),
    st.builds(going_on, FORKS, TARGETS),
    st.builds(going_on, FORKS, st.one_of(GOTO, WAIT)),
    WAIT.map(lambda one: [one]),
    ASK.map(lambda one: [one]),
    tag("result", payload=st.sampled_from(["", "done", "<goto>START</goto>"])).map(lambda one: [one]),
    # what cannot be read
    st.just([]),
    st.lists(st.one_of(GOTO, WAIT, ASK, FORK), min_size=2, max_size=3),
)


def written(said: Said) -> str:
    """The tags as text, with talk between them."""
    text = ["I did it."]
    for one in said:
        rest = "".join(f' {key}="{value}"' for key, value in one.items() if key not in ("tag", "target", "payload"))
        text.append(f"<{one['tag']}{rest}>{one.get('target', one.get('payload'))}</{one['tag']}>")
    return "\n".join(text)


FAILURES = ["limit", "overload", "overload", "auth", "billing", "silent", "crash", "context", "refusal", "time", "setup"]
SCRIPT_FAILURES = ["script", "crash", "silent", "time"]


# One machine beside another


def pooled(real: Run, names: Sequence[str]) -> dict[str, list[str]]:
    """Names by the pool they wait for."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(real.agents[name].pool, []).append(name)
    return found


def of_real(agent: Agent) -> dict[str, Any]:
    """What an agent is, in words both machines have."""
    results = None
    if agent.results is not None:
        results = [(one.agent, one.state, one.status, one.result) for one in agent.results]
    return {
        "state": agent.state,
        "status": agent.status,
        "parent": agent.parent,
        "cwd": agent.cwd,
        "session": (agent.session, agent.backend if agent.session else ""),
        "model": agent.model,
        "frames": [
            (one.state, one.session, one.backend if one.session else "", one.cwd, one.visits, one.model)
            for one in agent.stack or ()
        ],
        "variables": agent.variables or {},
        "visits": agent.visits,
        "input": agent.input,
        "results": results,
        "results_are_input": agent.results_are_input,
        "has a cause": bool(agent.cause),
        "has an error": bool(agent.error),
        "attempt": agent.attempt,
        "failures": agent.failures,
        "reminders": agent.reminders,
        "freshened": agent.freshened,
        "wake": agent.wake_at,
        "forked": list(agent.children or ()),
        "forks": agent.forks,
    }


def of_reference(agent: dict[str, Any]) -> dict[str, Any]:
    results = None
    if agent["results"] is not None:
        results = [(one["agent"], one["state"], one["status"], one["result"]) for one in agent["results"]]
    same = "state status parent cwd model variables visits input results_are_input attempt failures reminders".split()
    return {
        **{key: agent[key] for key in [*same, "freshened", "wake", "forked", "forks"]},
        "session": (agent["session"], agent["backend"] if agent["session"] else ""),
        "frames": [
            (one["state"], one["session"], one["backend"] if one["session"] else "", one["cwd"], one["visits"], one["model"])
            for one in agent["frames"]
        ],
        "results": results,
        "has a cause": bool(agent["cause"]),
        "has an error": bool(agent["failed_for"]),
    }


def plain(real: Run) -> Any:
    """A run as values that can be compared."""
    return msgspec.to_builtins(real, enc_hook=list)


def unpacked(real: Run) -> Run:
    """The run after a stay in a snapshot."""
    return journal._unpack(journal._pack(journal._Snapshot(journal.SCHEMA, 0, b"", real))).run


class Machine(RuleBasedStateMachine):
    """The real core and the reference are told the same; after each rule they must agree."""

    @initialize(most=st.sampled_from([0, 0, 0, 12]), budget=st.sampled_from([0.0, 0.0, 0.0, 3.0]))
    def start(self, most: int, budget: float) -> None:
        self.play = Play(
            FILES,
            input="begin",
            max_turns_at_once=2,
            max_scripts_at_once=2,
            max_agents=5,
            max_wait=1000.0,
            patience=200.0,
            max_iterations=most,
            budget=budget,
        )
        limits = {"input": "begin", "turns": 2, "scripts": 2, "agents": 5, "max_wait": 1000.0, "patience": 200.0}
        self.reference = Reference(STATES, "START.md", {**limits, "max_iterations": most, "budget": budget})
        self.reference.now = self.play.now
        self.sessions: set[str] = set()
        self.taken: list[tuple[str, Any, dict[str, Any]]] = []

    # rules

    def named(self, status: str) -> list[str]:
        return [agent.id for agent in self.play.run.agents.values() if agent.status == status]

    def begin_one(self, name: str) -> None:
        started = self.play.begin(name)
        assert isinstance(started, StepStarted)
        assert not started.session or started.session not in self.sessions
        self.sessions.add(started.session)
        expected = self.reference.begin(name, started.session)
        assert started.base == expected["base"]
        assert (started.step, started.attempt) == (expected["step"], expected["attempt"])
        assert not started.backend or started.turn == expected["turn"]

    @precondition(lambda self: run.owed(self.play.run))
    @rule(data=st.data())
    def a_step_begins(self, data: st.DataObject) -> None:
        self.begin_one(data.draw(st.sampled_from(run.owed(self.play.run))))

    @precondition(lambda self: run.owed(self.play.run))
    @rule()
    def every_owed_step_begins(self) -> None:
        for name in run.owed(self.play.run):
            self.begin_one(name)
        assert run.owed(self.play.run) == []

    @precondition(lambda self: self.named("running"))
    @rule(data=st.data(), said=SAID, cost=st.sampled_from([0.0, 0.25, 0.5]))
    def a_step_says(self, data: st.DataObject, said: Said, cost: float) -> None:
        name = data.draw(st.sampled_from(self.named("running")))
        if self.play.agent(name).results_are_input:
            said = [{**one, "input": "given"} if "input" in one else one for one in said]
        self.play.say(written(said), name, cds=DIRECTORIES, cost=cost)
        self.reference.output(name, said, cost, DIRECTORIES)

    @precondition(lambda self: self.named("running"))
    @rule(data=st.data(), cost=st.sampled_from([0.0, 0.25]), retry_in=st.sampled_from([-5.0, 0.0, 0.0, 30.0, 2000.0]))
    def a_step_fails(self, data: st.DataObject, cost: float, retry_in: float) -> None:
        name = data.draw(st.sampled_from(self.named("running")))
        script = self.play.agent(name).pool == SCRIPTS
        kind = data.draw(st.sampled_from(SCRIPT_FAILURES if script else FAILURES))
        retry_at = self.play.now + retry_in if retry_in else 0.0
        self.play.fail(kind, name, spent=Spending(cost=cost), retry_at=retry_at)
        self.reference.failure(name, kind, cost, retry_at)

    @precondition(lambda self: self.named("running"))
    @rule(data=st.data())
    def a_step_is_cut_off(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.named("running")))
        self.play.interrupt(name, cost=0.25)
        self.reference.interruption(name, 0.25)

    @rule(seconds=st.sampled_from([0.0, 1.0, 5.0, 15.0, 60.0, 300.0, 1000.0, -1.0, -100.0]))
    def time_passes(self, seconds: float) -> None:
        self.play.now += seconds
        while decided := core.decide(self.play.run, self.play.placed, Tick(time=self.play.now)):
            assert run.due(self.play.run, self.play.now)
            self.play.commit(decided)
        self.reference.tick(self.play.now)

    @rule(
        data=st.data(),
        kind=st.sampled_from(["answer", "answer", "stop", "retry", "move", "result", "give_up", "limits"]),
        text=st.sampled_from(["", "said"]),
        state=TARGETS,
    )
    def a_person_asks(self, data: st.DataObject, kind: Any, text: str, state: str) -> None:
        wanted: dict[str, Any] = {}
        if kind == "limits":
            wanted = {"budget": data.draw(st.sampled_from([None, 0.0, 9.0])), "max_iterations": None}
        elif kind != "stop":
            names = [*self.play.run.agents, "ghost"]
            wanted = {"agent": data.draw(st.sampled_from(["", *names] if kind == "answer" else names)), "text": text}
        wanted |= {"state": state} if kind == "move" else {}
        id = f"r{len(self.taken)}"
        self.taken.append((id, kind, wanted))
        taken = self.play.ask(kind, id=id, **wanted)[0]
        assert isinstance(taken, RequestTaken)
        # A person who gives up says why, or the machine does.
        told = {**wanted, "text": text or "given up"} if kind == "give_up" else wanted
        assert self.reference.request(id, kind, told) == (taken.problem == "")

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def a_request_comes_twice(self, data: st.DataObject) -> None:
        id, kind, wanted = data.draw(st.sampled_from(self.taken))
        assert self.play.ask(kind, id=id, **wanted) == []

    @rule(kind=st.sampled_from(["parked", "signal", "stop"]))
    def the_run_stops(self, kind: str) -> None:
        self.play.stop(kind)
        self.reference.stop(kind)

    @precondition(lambda self: self.play.run.stopped or self.play.run.ended or self.named("failed"))
    @rule()
    def the_run_is_resumed(self) -> None:
        self.play.resume()
        self.reference.resume()

    # what must hold

    @invariant()
    def both_have_the_same_agents(self) -> None:
        real, slow = self.play.run, self.reference
        assert list(real.agents) == list(slow.agents)
        for name, agent in real.agents.items():
            assert of_real(agent) == of_reference(slow.agents[name])
        assert real.fork_counters == {name: n for name, n in real.fork_counters.items() if n}

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
        assert pooled(real, run.owed(real)) == self.reference.owed()

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
        assert run.wake_at(real) == slow.due()
        assert (real.iterations, real.cost, real.steps) == (slow.iterations, slow.cost, slow.steps)
        assert (real.stopped.kind if real.stopped else "", real.ended) == (slow.stopped, slow.ended)
        assert (views.status(real), views.exit_code(real)) == (slow.status(), slow.exit_code())

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
        assert real.failed == words.count("failed")
        for agent in agents:
            children = [real.agents[name] for name in agent.children or () if name in real.agents]
            assert agent.alive == sum(child.status != "failed" for child in children)

    @invariant()
    def folding_all_events_gives_the_run(self) -> None:
        decisions = [msgspec.json.decode(events.encode(one), type=Decision) for one in self.play.decisions]
        assert decisions == self.play.decisions
        assert plain(run.fold(decisions)) == plain(self.play.run)

    def teardown(self) -> None:
        """Cut anywhere, keep a snapshot, fold the rest: the same run."""
        if not hasattr(self, "play"):
            return
        decisions = self.play.decisions
        whole = plain(self.play.run)
        early = Run()
        for cut, decision in enumerate(decisions, 1):
            run.apply(early, decision)
            kept = unpacked(early)
            assert plain(kept) == plain(early)
            if cut % 7 == 0:
                assert plain(run.fold(decisions[cut:], kept)) == whole


Machine.TestCase.settings = settings(
    max_examples=2000 if TORTURE else 60, stateful_step_count=80 if TORTURE else 40, deadline=None
)
TestTheCoreAndAReferenceAgree = Machine.TestCase
