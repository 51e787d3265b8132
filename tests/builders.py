"""Little builders for tests of the pure machine: a workflow from texts, a run moved by hand."""

from collections.abc import Mapping
from typing import Any

from raymond.language import policy, reading, workflow
from raymond.language.refusal import Refusal
from raymond.language.workflow import Workflow
from raymond.machine import decide, evolve, requests, schedule
from raymond.machine.agent import SCRIPTS, Agent
from raymond.machine.events import Decision, Event, RequestTaken, RunStarted, RunStopped, StepStarted
from raymond.machine.failures import KINDS, Kind
from raymond.machine.inputs import (
    Begin,
    Checked,
    Failure,
    Input,
    Interruption,
    Judged,
    Named,
    Output,
    SealTaken,
    Spending,
    Stop,
    Tick,
)
from raymond.machine.placed_workflow import PlacedWorkflow, rules_of
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.step_events import Verdict

KEY = "6b9f0f5e-4a4b-4d0c-9f1e-0d8f6d6c2a11"
START = 1_000_000.0
"""When every run moved by hand begins."""


def head(policy: str, body: str = "") -> str:
    """The text of a prompt with frontmatter."""
    return f"---\n{policy}\n---\n{body}"


def block(policy: str) -> str:
    """The text of a script with a policy."""
    lines = "\n".join(f"# {line}" for line in policy.splitlines())
    return f"# /// raymond\n{lines}\n# ///\n"


def build(files: Mapping[str, str], entry: str = "START.md") -> Workflow:
    """A workflow without mistakes."""
    made = workflow.build("test", files, entry=entry)
    assert made.diagnostics == []
    return made


def place(files: Mapping[str, str], entry: str = "START.md") -> PlacedWorkflow:
    """A workflow with its folders."""
    return PlacedWorkflow(build(files, entry), "/snap", "/tasks")


def start(placed: PlacedWorkflow, **given: Any) -> RunStarted:
    """The first event of a run of `workspace`."""
    backends = {one.name: one.policy.backend for one in placed.workflow.states.values() if one.policy.backend}
    known: dict[str, Any] = {
        "workflow_id": "test-1",
        "key": KEY,
        "name": "test",
        "scope_dir": "/scope",
        "source": "0" * 64,
        "entry": placed.workflow.entry,
        "cwd": "/tree",
        "backend": "claude",
        "backends": backends,
        "budget_from": "default",
        "version": "1.0",
    }
    return RunStarted(**known | given)


def kind_of(name: str) -> Kind:
    """The failure class called `name`."""
    return next(kind for kind in KINDS if kind == name)


class Play:
    """A run moved by hand: what a driver does, without a machine under it."""

    def __init__(self, files: Mapping[str, str], *, entry: str = "START.md", **given: Any) -> None:
        self.workspace = place(files, entry)
        self.run = Run()
        self.now = START
        self.decisions: list[Decision] = []
        self.commit(decide.begin(start(self.workspace, **given)))

    # what a run is made of

    @property
    def main(self) -> Agent:
        return self.run.agents["main"]

    def agent(self, name: str) -> Agent:
        return self.run.agents[name]

    @property
    def events(self) -> list[Event]:
        """All that happened."""
        return [event for decision in self.decisions for event in decision.events]

    @property
    def last(self) -> list[Event]:
        """What the last decision said."""
        return self.decisions[-1].events

    def kinds(self) -> list[str]:
        """The names of the events of the last decision."""
        return [type(event).__name__ for event in self.last]

    def statuses(self) -> dict[str, str]:
        return {agent.id: agent.status for agent in self.run.agents.values()}

    # what comes in

    def commit(self, events: list[Event]) -> list[Event]:
        """Let events be true as one decision."""
        if events:
            self.decisions.append(Decision(seq=self.run.seq + 1, time=self.now, events=events))
            evolve.apply(self.run, self.decisions[-1])
        return events

    def put(self, input: Input) -> list[Event]:
        return self.commit(decide.decide(self.run, self.workspace, input))

    def begin(self, agent: str = "main") -> Event:
        """Start the step of an agent that is owed, also when it has to wait after a crash first."""
        visit = self.agent(agent).visit
        if visit.failures and visit.wake_at:
            self.pass_time(max(0.0, visit.wake_at - self.now))
        assert agent in schedule.owed(self.run), f"{agent} is not owed: {self.statuses()}"
        [started] = self.put(Begin(time=self.now, agent=agent))
        if isinstance(started, StepStarted) and started.phase == "seal":
            self.put(SealTaken(time=self.now, agent=agent, seal="5ea1", files=1))
            [started] = self.put(Begin(time=self.now, agent=agent))
        return started

    def name(self, session: str, agent: str = "main") -> list[Event]:
        """The backend says which conversation the running turn of `agent` writes."""
        return self.put(Named(time=self.now, agent=agent, session=session))

    def say(
        self,
        text: str,
        agent: str = "main",
        *,
        cds: Mapping[str, str | Refusal] | None = None,
        denied: tuple[str, ...] = (),
        session: str | None = None,
        **spent: Any,
    ) -> list[Event]:
        """A step of `agent` begins, unless it runs, and ends with this output."""
        if self.agent(agent).status != "running":
            self.begin(agent)
        one = self.agent(agent)
        rules = rules_of(self.run, self.workspace, one)
        output = Output(
            time=self.now,
            agent=agent,
            reading=policy.with_line(rules, reading.read(text, script=one.pool == SCRIPTS), text),
            spent=Spending(**spent),
            session=one.turn_session if session is None else session,
            denied=denied,
            directories=cds or {},
            text=text,
        )
        return self.put(output)

    def fail(self, kind: Kind, agent: str = "main", error: str = "boom", **given: Any) -> list[Event]:
        """A step of `agent` begins, unless it runs, and fails."""
        if self.agent(agent).status != "running":
            self.begin(agent)
        return self.put(Failure(time=self.now, agent=agent, kind=kind, error=error, **given))

    def check(self, verdict: Verdict = "passed", agent: str = "main", **given: Any) -> list[Event]:
        """The gate of `agent` begins, unless it runs, and ends."""
        if self.agent(agent).status != "running":
            self.begin(agent)
        return self.put(Checked(time=self.now, agent=agent, verdict=verdict, **given))

    def judge(self, said: str = "", agent: str = "main", *, problem: str = "", **spent: Any) -> list[Event]:
        """The evaluator of `agent` begins, unless it runs, and ends."""
        if self.agent(agent).status != "running":
            self.begin(agent)
        return self.put(Judged(time=self.now, agent=agent, said=said, problem=problem, spent=Spending(**spent)))

    def interrupt(self, agent: str = "main", *, by_death: bool = False, **spent: Any) -> list[Event]:
        """A step of `agent` begins, unless it runs, and is cut off."""
        if self.agent(agent).status != "running":
            self.begin(agent)
        return self.put(Interruption(time=self.now, agent=agent, spent=Spending(**spent), by_death=by_death))

    def pass_time(self, seconds: float = 0.0) -> list[Event]:
        """Time goes by; all that is due happens."""
        self.now += seconds
        happened: list[Event] = []
        while events := self.put(Tick(time=self.now)):
            happened += events
            assert len(happened) < 1000, f"time does not end: {events}"
        return happened

    def stop(self, how: RunStopped | None = None) -> list[Event]:
        """The run stops, as with Ctrl-C unless `how` says otherwise."""
        return self.put(Stop(time=self.now, how=how or RunStopped(kind="paused")))

    def ask(self, kind: Any, id: str = "", **given: Any) -> list[Event]:
        """A request from outside."""
        request = Request(id=id or f"r{self.run.seq}", kind=kind, **given)
        return self.commit(requests.take(self.run, self.workspace, request))

    def refused(self, kind: Any, **given: Any) -> str:
        """Why a is refused; nothing else follows from it."""
        [taken] = self.ask(kind, **given)
        assert isinstance(taken, RequestTaken)
        return taken.problem

    def resume(self, **how: Any) -> list[Event]:
        return self.commit(requests.resume(self.run, "1.0", **{"now": self.now} | how))


def asking(files: Mapping[str, str]) -> Play:
    """Two children of main ask something; `files` has A, B and N."""
    play = Play(files)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.say('<ask next="N">first?</ask>', "main_a1")
    play.say('<ask next="N">second?</ask>', "main_b2")
    return play
