"""The main loop of a run as pure values, without processes, files or a clock.

Every driver, in one process or on many machines, repeats the same calls:

    end(ending)          a step has ended
    ask(request, now)    a person asked for something; also answer, pause and stop
    proceed(now)         do what is due, and begin the steps that are owed
    orders()             what the driver has to do about all of it

The conductor decides and changes the run; the driver carries out the orders: it writes every decision, and only then
pauses and starts steps, drops requests and tells faces. So nothing follows from a decision before it is written, and
a driver that dies in between has done nothing that the journal does not know. The conductor knows no process, file or
clock: time comes in as a value, and a step is the name of its agent, which runs one step at a time.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from raymond.machine import budget, overtaking, requests
from raymond.machine.agent import ASKING, RUNNING, SCRIPTS, backend_of
from raymond.machine.decide import decide
from raymond.machine.events import (
    UNRECORDED,
    ClockSet,
    Decision,
    Event,
    LeftoversEnded,
    Program,
    ProgramAdded,
    Recording,
    RequestTaken,
    RunStopped,
)
from raymond.machine.evolve import apply
from raymond.machine.inputs import Begin, Ending, Failure, Input, Interruption, Named, Started, Stop, Tick
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.schedule import due, over_at, owed, wake_at
from raymond.machine.sender import Sender, is_heard

UNSIGNED = "it does not tell who it comes from"


class Orders(Struct, frozen=True):
    """What a driver has to do, in this order."""

    decisions: list[Decision]
    """Write these before anything else is done."""
    taken: list[str]
    """Ids of the requests that these decisions answer: they need not be kept any longer."""
    pause: list[str]
    """Agents whose running step is to be stopped."""
    start: list[str]
    """Agents whose step is to be started."""


class Conductor:
    """Turns inputs into orders for the driver of one run."""

    def __init__(self, run: Run, placed: PlacedWorkflow, most: int = 1 << 30) -> None:
        self.run = run
        self.workspace = placed
        self._most = most
        """Steps that the driver can carry out at once."""
        self.is_crowded = False
        """More steps were owed at once than that."""
        self.stopping = False
        """Every running step is to be stopped at once, and no new step begins."""
        self.waiting: dict[str, list[Request]] = {}
        """Requests to pause an agent; the run knows nothing of them before its running step has ended."""
        self._offset: float | None = None
        """The wall clock less the time that passes for the driver."""
        self._decisions: list[Decision] = []
        self._taken: list[str] = []
        self._pause: list[str] = []
        self._start: list[str] = []

    # What came in

    def end(self, ending: Ending) -> None:
        """The step of an agent has ended."""
        waiting = self.waiting.pop(ending.agent, [])
        # One that was taken in the meantime pauses nothing.
        is_paused = bool(waiting) and any(request.id not in self.run.requests for request in waiting)
        if (self.stopping or is_paused) and isinstance(ending, Failure):
            # We stopped the step, so the work did not fail.
            ending = Interruption(time=ending.time, agent=ending.agent, spent=ending.spent)
        self._decide(ending)
        for request in waiting:
            self.take(request, ending.time)

    def started(self, agent: str, now: float) -> bool:
        """The step of an agent could be started; returns whether something follows from that."""
        return bool(self.run.closed) and self._decide(Started(time=now, agent=agent))

    def name(self, agent: str, session: str, now: float) -> bool:
        """A backend says which session the running turn of `agent` writes; returns whether that is new."""
        if self.run.agents[agent].turn_session == session:
            return False
        return self._decide(Named(time=now, agent=agent, session=session))

    def unnamed(self) -> list[str]:
        """The backends whose first turn is about to start, and of which nobody has said who they are."""
        pools = [pool for name in self._start if (pool := self.run.agents[name].pool) != SCRIPTS]
        if not pools:
            return []
        named = {one.name for one in self.run.programs}
        return [name for name in dict.fromkeys(map(backend_of, pools)) if name not in named]

    def add(self, program: Program, now: float) -> None:
        """Say who one of these is."""
        self._commit(now, [ProgramAdded(program=program)])

    def notice(self, now: float, steady: float) -> None:
        """Compare the wall clock with one that nobody sets; a difference of a second is a fact about the run."""
        offset = now - steady
        if self._offset is None:
            self._offset = offset
        by = offset - self._offset
        if abs(by) < 1.0:
            return
        self._offset = offset
        if not self.run.final_status:
            self._commit(now, [ClockSet(seconds=round(by, 3))])

    # What was asked

    def ask(self, request: Request, now: float, *, stops: bool = True) -> None:
        """A person asks for something while steps run; asking for it twice is harmless.

        Without `stops`, it was left for a driver that is gone: a stop of that time is not one of ours.
        """
        if any(one.id == request.id for waiting in self.waiting.values() for one in waiting):
            return  # also when it is about another agent: one request pauses one
        refused = requests.problem(self.run, self.workspace, request, now)
        agent = self.run.agents.get(request.agent)
        is_new = request.id not in self.run.requests
        if request.kind == "pause" and agent and agent.status == RUNNING and is_new and not refused:
            self._pause_after(agent.id, request)
        elif self.take(request, now) and stops and request.ends_steps and not refused:
            self.stopping = True  # the decision has the stop, unless the run was stopped before

    def ask_left(self, left: Sequence[Request], now: float, *, stops: bool = False) -> None:
        """These lay in the inbox together, the oldest first; see `ask`."""
        for request, again in list(overtaking.repeated(self.run, self.workspace, left, now)):
            self._taken.append(request.id)
            self._commit(now, overtaking.overtaken(self.run, self.workspace, request, again, now))
        for request in left:
            self.ask(request, now, stops=stops)

    def take(self, request: Request, now: float) -> bool:
        """Decide on a request and nothing more; returns whether it was new."""
        self._taken.append(request.id)
        return self._commit(now, requests.take(self.run, self.workspace, request, now))

    def answer(self, id: str, agent: str, text: str, now: float, sender: Sender | None = None) -> None:
        """Somebody typed an answer to the question of `agent` where the run is driven; nobody can have guessed `id`."""
        self.take(Request(id=id, kind="answer", agent=agent, text=text, sender=sender), now)

    def pause(self, now: float) -> None:
        """Begin nothing new; the run pauses when the running steps have ended."""
        self._decide(Stop(time=now, how=RunStopped(kind="paused")))

    def stop(self, how: RunStopped, now: float) -> None:
        """Begin nothing new and stop every running step; unfinished steps run again on resume."""
        self.stopping = True
        self._decide(Stop(time=now, how=how))

    def resume(
        self,
        version: str,
        now: float,
        *,
        at_once: bool = False,
        fresh: bool = False,
        retries: bool = True,
        driven: float = 0.0,
        programs: Iterable[Program] = (),
        recording: Recording = UNRECORDED,
    ) -> None:
        """A driver resumes the run; `requests.resume` says what that means."""
        events = requests.resume(
            self.run,
            version,
            now=now,
            at_once=at_once,
            fresh=fresh,
            retries=retries,
            driven=driven,
            programs=programs,
            recording=recording,
        )
        self._commit(now, events)

    def leave(self, leftovers: int, now: float) -> None:
        """The driver leaves, and has ended processes that finished steps had left running."""
        if leftovers:
            self._commit(now, [LeftoversEnded(count=leftovers)])

    def note(self, events: list[Event], now: float) -> None:
        """Something happened to the run as a whole that nothing follows from."""
        if events:
            self._commit(now, events)

    # What follows

    def proceed(self, now: float) -> None:
        """Do what is due, then begin every step that is owed and can be paid for."""
        while True:
            while due(self.run, now) and self._decide(Tick(time=now)):
                pass
            if self.stopping:
                return
            for name in self._next():
                if self._is_affordable(name) and not self._begin(name, now):
                    # An agent that has to wait for its model makes room for another, and one whose judge is not asked
                    # goes on or ends: look again.
                    break
            else:
                return

    def orders(self) -> Orders:
        """What has to be done now; each order is given once."""
        orders = Orders(self._decisions, self._taken, self._pause, self._start)
        self._decisions, self._taken, self._pause, self._start = [], [], [], []
        return orders

    def is_done(self, *, can_answer: bool = False) -> bool:
        """Whether the driver can exit; not while a question is open that somebody `can_answer` here."""
        run = self.run
        if self.stopping:
            return True
        if run.statuses.get(RUNNING):
            return False
        if run.stop or run.final_status:
            return True
        if can_answer and run.statuses.get(ASKING):
            return False
        return wake_at(run) is None

    def wakes_at(self) -> float | None:
        """When the driver must wake up even if nothing comes in; None when time alone changes nothing."""
        if self.run.stop:
            return None
        at, over = wake_at(self.run), over_at(self.run)
        return min(at, over) if at and over else at or over or None

    def _next(self) -> list[str]:
        names = owed(self.run)
        room = max(0, self._most - self.run.statuses.get(RUNNING, 0))
        if len(names) > room:
            self.is_crowded = True
        return names[:room]

    def _begin(self, name: str, now: float) -> bool:
        self._decide(Begin(time=now, agent=name))
        agent = self.run.agents.get(name)
        begun = agent is not None and agent.status == RUNNING
        if begun:
            self._start.append(name)
        return begun

    def _is_affordable(self, name: str) -> bool:
        # Checked for each turn: those begun a moment ago may have reserved more than `owed` expected.
        return self.run.agents[name].pool == SCRIPTS or budget.affordable(self.run) > 0

    def _pause_after(self, agent: str, request: Request) -> None:
        waiting = self.waiting.setdefault(agent, [])
        if not waiting:
            self._pause.append(agent)
        # Whatever else is in it is not needed, and a step may last for days.
        waiting.append(Request(id=request.id, kind="pause", agent=agent, sender=request.sender))

    def _decide(self, input: Input) -> bool:
        return self._commit(input.time, decide(self.run, self.workspace, input))

    def _commit(self, at: float, events: list[Event]) -> bool:
        if not events:
            return False
        decision = Decision(seq=self.run.seq + 1, time=at, events=events)
        apply(self.run, decision)
        self._decisions.append(decision)
        return True


# What becomes of requests that were left for a driver that died


class RequestOutcome(Struct, frozen=True):
    """What becomes of one request."""

    request: Request
    refusal: str = ""
    """Why it is refused; empty when it is obeyed."""
    is_put_aside: bool = False
    """It is not even journaled, because anybody may have left it."""


def request_outcomes(
    run: Run, placed: PlacedWorkflow | None, left: Sequence[Request], now: float, *, knows_senders: bool
) -> list[RequestOutcome]:
    """Try it on `run`, which is changed by that: what a driver does that finds these, the oldest first.

    `knows_senders`: see sender.is_heard. Without a workflow nobody can tell what is refused later.
    """
    heard = {one.kind: is_heard(one.kind, knows_senders=knows_senders) for one in left}
    problems = _request_problems(run, placed, [one for one in left if heard[one.kind]], now) if placed else {}
    return [
        RequestOutcome(one, problems.get(one.id, ""))
        if heard[one.kind]
        else RequestOutcome(one, UNSIGNED, is_put_aside=True)
        for one in left
    ]


def _request_problems(run: Run, placed: PlacedWorkflow, heard: Sequence[Request], now: float) -> dict[str, str]:
    conductor = Conductor(run, placed)
    conductor.ask_left(heard, now)
    events = (event for decision in conductor.orders().decisions for event in decision.events)
    return {event.request: event.problem for event in events if isinstance(event, RequestTaken)}
