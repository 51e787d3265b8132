"""Ask something of a run that exists: one function for each request, and how it gets there.

A request is brought to the process that drives the run, or written into its journal when no process does.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond.control import arguments, config, inside, left_requests, leftovers, runs
from raymond.control.leftovers import Leftover
from raymond.control.settings import KEYS, OPTIONS
from raymond.drivers import origin
from raymond.drivers.face import Face
from raymond.drivers.reception import IN_INBOX
from raymond.errors import Error, JournalError, RunBusy, UsageError
from raymond.faces import documents
from raymond.language.refusal import Refusal
from raymond.machine import overtaking, requests
from raymond.machine.agent import RUNNING
from raymond.machine.events import Decision, Event, LeftoversEnded, RequestTaken, RunStarted
from raymond.machine.evolve import apply
from raymond.machine.inputs import Spending
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.requests import Kind, Request
from raymond.machine.run import Run
from raymond.machine.sender import FOR_STEPS
from raymond.redaction import Secrets
from raymond.store import asked_files, exports, inbox, journal, lock, workflow_snapshot
from raymond.store.journal import Folded
from raymond.store.leftovers import end_foreign_holders
from raymond.store.lock import ForeignHolder, Lock
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.views.questions import Question, open_questions

if TYPE_CHECKING:
    from raymond.backends import Reply, Trouble
    from raymond.backends.guard import Guarded, GuardedDirect

TAKEN_WITHIN = 3.0
"""Seconds to wait for the process that drives a run."""

ANSWERED_WITHIN = 30.0
"""Seconds to wait for its reply to what only counts while the sender is there."""
_SPARE = 4096
"""Bytes of a request that say who sent it."""
_WHAT = {"answer": "the answer", "move": "the input", "result": "the result"}
_TOO_LONG = "put it into a file, and give the path of the file instead of its text"
_BY_SENDER = ("from_step", "needs_person", "needs_review")
"""Refusals that are journaled, because it matters who tried: by the driver of the run when it has one."""


# Bring a request to a run: to the process that drives it, or into its journal when nobody does


class Taken(Struct, frozen=True):
    """The process that drives the run has taken the request."""

    pid: int


class Left(Struct, frozen=True):
    """The request waits for the process that drives the run."""

    pid: int
    host: str = ""
    """The other machine it is on; empty for this one."""


class LeftBefore(Struct, frozen=True):
    """Nobody drives the run: this was asked of a driver that died, and waits for the next one."""

    agent: str
    """The agent to pause."""


class Journaled(Struct, frozen=True):
    """Nobody drives the run: these decisions follow from the request and are in the journal."""

    decisions: list[Decision]
    ended: int = 0
    """Of a stop: how many processes of the run were ended."""
    left: list[Leftover] = []
    """Of a stop: the processes of the run that still run."""


Delivery: TypeAlias = Taken | Left | LeftBefore | Journaled | Refusal
"""A refusal means that nothing else was done: at most who tried was written."""


def deliver(
    project: Project,
    id: str,
    request: Request,
    *,
    force: bool = False,
    face: Face | None = None,
    within: float = TAKEN_WITHIN,
) -> Delivery:
    """Give `request` to whoever drives the run, or journal it here and tell `face`."""
    folder = project.run(id)
    folded = journal.read(folder)
    placed = _placed_workflow(project, folded.run, request)
    if len(msgspec.json.encode(request)) > inbox.MOST_BYTES - _SPARE:
        return Refusal("too_long", f"{_WHAT.get(request.kind, 'the request')} is longer than 1 MiB", _TOO_LONG)
    if request.id in folded.run.requests:
        return _why_refused(folder, request) or Journaled([])  # its driver ended before it could say so
    request = origin.signed(request, origin.this(), Secrets.of(os.environ))
    ended = 0
    if lock.holder(folder) is not None:
        problem = requests.problem(folded.run, placed, request, time())
        if request.ends_steps and (problem is None or problem.kind == "run_ended"):
            ended = end_foreign_holders(folder, folded.run.start)
        if problem and problem.kind not in _BY_SENDER and not ended:
            return problem
    try:
        with _unrecorded(folder, request):
            held = lock.take(folder, force=force, brief=True)
    except RunBusy as busy:
        sent = _send(folder, request, busy, within)
        return sent or deliver(project, id, request, force=force, face=face)
    try:
        done = _journal(project, held, journal.read(folder), placed, request, face)
    finally:
        held.release()
    if ended and isinstance(done, Refusal) and done.kind == "run_ended":
        return Journaled([], ended=ended)
    return replace(done, ended=done.ended + ended) if isinstance(done, Journaled) else done


def _placed_workflow(project: Project, run: Run, request: Request) -> PlacedWorkflow:
    """The workflow of the run; what ends it needs none, and works although its files are gone."""
    try:
        return workflow_snapshot.placed_workflow(project, run)
    except Error:
        if request.kind not in ("stop", "cancel"):
            raise
    from raymond.language.workflow import build

    return PlacedWorkflow(build(run.start.name, {}), "", "")


def _send(folder: RunFolder, request: Request, busy: RunBusy, within: float) -> Taken | Left | Refusal | None:
    """Ask the process that drives the run; None when it ended without having heard of it."""
    if busy.host not in ("", os.uname().nodename):
        return _leave_elsewhere(folder, request, busy)
    from raymond.drivers import door  # most of what is asked here needs no socket

    in_inbox = request.kind in FOR_STEPS
    until = monotonic() + (within if in_inbox else max(within, ANSWERED_WITHIN))
    while holder := lock.holder(folder):
        if isinstance(holder, ForeignHolder) and holder.pid == busy.pid:
            return Refusal("out_of_reach", holder.told(folder.id), holder.way_out(folder.id))
        left = until - monotonic()
        if holder.socket == IN_INBOX or (left < 0 and in_inbox):
            return _leave(folder, request, busy, within)
        if left < 0:
            break
        if holder.socket:
            with contextlib.suppress(OSError):
                reply = door.ask(folder.socket, request, left)
                if reply is not None:
                    return reply.problem or _written(folder, request, busy)
                continue
        sleep(0.02)
    else:
        return None
    # Whoever asked has to be there when the driver looks: it is not taken later.
    what = f"process {busy.pid}, which runs {folder.id}, does not answer, so nothing was taken"
    return Refusal("out_of_reach", what, f"if it hangs: kill -9 {busy.pid or 'PID'}, then the same command again")


def _written(folder: RunFolder, request: Request, busy: RunBusy) -> Taken | Refusal:
    """A driver replies when it has written; a step that speaks in its place writes nothing."""
    if journal.has_request(folder, request.id):
        return Taken(busy.pid)
    what = f"process {busy.pid} seems to have taken it, but it is not in the journal of {folder.id}"
    hint = "a step may have answered in its place: look at the processes of the run, and ask again"
    return Refusal("out_of_reach", what, hint)


def _leave_elsewhere(folder: RunFolder, request: Request, busy: RunBusy) -> Left | Refusal:
    """A driver on another machine can only be reached by its inbox, which does not tell who asks."""
    if lock.signed(folder).socket != IN_INBOX and request.kind not in FOR_STEPS:
        what = f"process {busy.pid} on {busy.host} drives {folder.id}, and takes this only from processes there"
        hint = f"do it on {busy.host}; if {busy.host} is gone: {_overruling(folder.id, request)}"
        return Refusal("out_of_reach", what, hint)
    inbox.leave(folder.inbox, request)
    return Left(busy.pid, busy.host)


def _overruling(id: str, request: Request) -> str:
    """The command that does what was asked although another machine holds the run."""
    match request.kind:
        case "cancel":
            return f"raymond cancel {id} --force"
        case "answer":
            return f"raymond resume {id} --force, then answer"
        case _:
            return "the same command with --force"


def _leave(folder: RunFolder, request: Request, busy: RunBusy, within: float) -> Taken | Left | Refusal | None:
    """Leave it for a driver without a socket; None when that process ended without looking."""
    path = inbox.leave(folder.inbox, request)
    if _was_taken(path, folder, within):
        return _why_refused(folder, request) or Taken(busy.pid)
    if lock.holder(folder) is None:
        inbox.remove(path)
        return None
    return Left(busy.pid)


def _why_refused(folder: RunFolder, request: Request) -> Refusal | None:
    """Why the process that took `request` refused it: another request may have come first."""
    for decision in reversed(journal.decisions(folder)):
        for event in decision.events:
            if isinstance(event, RequestTaken) and event.request == request.id:
                return Refusal("too_late", event.problem) if event.problem else None
    # Any step can remove a file from the inbox, and say in driver.json that requests belong there.
    what = f"the request was removed before the process that drives {folder.id} took it"
    return Refusal("out_of_reach", what, "ask again")


def _was_taken(path: str, folder: RunFolder, within: float) -> bool:
    until = monotonic() + within
    while os.path.exists(path):
        if monotonic() > until or lock.holder(folder) is None:
            return False
        sleep(0.05)
    return True


def _journal(
    project: Project, held: Lock, folded: Folded, placed: PlacedWorkflow, request: Request, face: Face | None
) -> Journaled | LeftBefore | Refusal:
    """Decide and write it here; the lock is held."""
    run, id = folded.run, folded.run.start.workflow_id
    if face:
        face.on_decisions(run, [])
    decisions: list[Decision] = []

    def commit(events: list[Event]) -> None:
        if events:
            decisions.append(Decision(seq=run.seq + 1, time=round(time(), 3), events=events))
            apply(run, decisions[-1])

    commit(journal.torn(folded))
    refused = requests.problem(run, placed, request, time())
    if refused and refused.kind in _BY_SENDER and not run.final_status:
        commit(requests.take(run, placed, request))
        _append(project.run(id), held, folded.size, request, decisions)
        return refused
    agent = run.agents.get(request.agent)
    if request.kind == "pause" and agent and agent.status == RUNNING:
        # Its process may live on: the next driver finds it, or ends it.
        if _left_pauses(project.run(id), run, request.agent):
            return LeftBefore(request.agent)
        return Refusal("not_driven", f"{id} is not running: {request.agent} was interrupted")
    if refused and refused.kind == "run_ended" and request.kind in ("stop", "cancel"):
        return _clear(project, run, at_once=request.ends_steps) or refused
    # The driver is gone, and with it the step that the journal still calls running.
    ended = leftovers.end(project.run(id), run) if request.ends_steps and not refused else 0
    was_running = agent is not None and agent.status == RUNNING
    for events in _cut(project, run, placed, request):
        commit(events)
    overtaken = _pause_first(project.run(id), run, placed, request, commit)
    problem = requests.problem(run, placed, request, time())
    if problem and was_running and request.kind == "retry":
        return Refusal("not_driven", f"{id} is not running: {request.agent} was interrupted")
    if problem:
        return problem
    overtaken += _overtake(project.run(id), run, placed, request, commit)
    commit([*requests.take(run, placed, request), *([LeftoversEnded(count=ended)] if ended else [])])
    _append(project.run(id), held, folded.size, request, decisions)
    for path in overtaken:
        inbox.remove(path)
    with contextlib.suppress(JournalError):
        exports.put_state(project.tree, id, documents.state_file(run, status=runs.undriven_status(run)))
    if face:
        face.on_decisions(run, decisions)
        face.refresh(run)
    left = leftovers.find(project.run(id), run) if request.kind in ("stop", "cancel") else []
    return Journaled(decisions, ended=ended, left=left)


def _left_pauses(folder: RunFolder, run: Run, agent: str) -> list[tuple[str, Request]]:
    """The pauses of an agent that were left for a driver that died, with the paths of their files."""
    found = left_requests.found(folder, run)
    return [(path, left) for path, left in found if left.kind == "pause" and left.agent == agent]


def _pause_first(
    folder: RunFolder, run: Run, placed: PlacedWorkflow, request: Request, commit: Callable[[list[Event]], None]
) -> list[str]:
    """Obey the pause that a retry takes back, which nobody lived to hear; the files of it."""
    paths: list[str] = []
    for path, left in _left_pauses(folder, run, request.agent) if request.kind == "retry" else ():
        if requests.problem(run, placed, left) is None:
            commit(requests.take(run, placed, left))
            paths.append(path)
    return paths


def _overtake(
    folder: RunFolder, run: Run, placed: PlacedWorkflow, request: Request, commit: Callable[[list[Event]], None]
) -> list[str]:
    """Settle what was left for a driver that died and that `request` overtakes; the files of it."""
    paths: list[str] = []
    for path, left in left_requests.found(folder, run):
        # What the next driver puts aside must not be obeyed in part.
        if left.kind == "limits" and left_requests.tell_senders(folder):
            continue
        settled = overtaking.overtaken(run, placed, left, request, time())
        commit(settled)
        paths += [path] if settled else []
    return paths


def _clear(project: Project, run: Run, *, at_once: bool) -> Journaled | None:
    """What a killed driver left of a run that has ended, which is ended if it has to be; None when there is nothing."""
    ended = leftovers.clear(project, run) if at_once else 0
    left = leftovers.find(project.run(run.start.workflow_id), run) if ended or not at_once else []
    return Journaled([], ended=ended, left=left) if ended or left else None


def _append(folder: RunFolder, held: Lock, size: int, request: Request, decisions: list[Decision]) -> None:
    with _unrecorded(folder, request):
        book = journal.Journal(folder, size, held)
        for decision in decisions:
            book.append(decision)
        book.close()


@contextlib.contextmanager
def _unrecorded(folder: RunFolder, request: Request) -> Iterator[None]:
    """To resume the run is no way out when what was asked is not in its journal: after a stop it is the opposite."""
    try:
        yield
    except RunBusy:
        raise
    except JournalError as error:
        with contextlib.suppress(JournalError):
            if not journal.has_request(folder, request.id):
                error.hint = "nothing was recorded: fix this, then run the same command again"
        raise


def _cut(project: Project, run: Run, placed: PlacedWorkflow, request: Request) -> Iterator[list[Event]]:
    """The ends of the steps that the journal still calls running, and that the request is about."""
    if request.kind not in ("stop", "cancel"):
        said = _said(project, run, placed, request.agent)
        yield requests.cut(run, request.agent, _cost(run, request.agent, said))
    elif request.ends_steps:
        for name in [agent.id for agent in run.agents.values() if agent.status == RUNNING]:
            said = _heard(project, run, placed, name)
            # The next driver finds how the turn ended, if there is one.
            if request.kind == "cancel" or not _ending(said):
                yield requests.cut(run, name, _cost(run, name, said))


def _heard(project: Project, run: Run, placed: PlacedWorkflow, name: str) -> "Guarded | GuardedDirect | None":
    """What the turn of an agent has said, if that can be found out: what ends a run works whatever else is broken."""
    try:
        return _said(project, run, placed, name)
    except (Error, OSError, LookupError):
        return None


def _ending(said: "Guarded | GuardedDirect | None") -> "Reply | Trouble | None":
    """How the turn ended, by the spool or its session; None when it did not."""
    return (getattr(said, "ending", None) or said.recall()) if said else None


def _said(project: Project, run: Run, placed: PlacedWorkflow, name: str) -> "Guarded | GuardedDirect | None":
    """What the running turn of an agent has said, by its spool and its session."""
    from raymond.backends import Direct, registry
    from raymond.backends.guard import GuardedDirect
    from raymond.machine.agent import SCRIPTS, backend_of
    from raymond.steps import spool

    agent = run.agents.get(name)
    if not agent or agent.status != RUNNING or agent.pool == SCRIPTS:
        return None
    backends = registry.make(project, run, placed, config.load(project.tree)["backends"])
    backend = backends[backend_of(agent.pool)]
    folder = project.run(run.start.workflow_id).spool
    sent = spool.sent(os.path.join(folder, spool.folder_of(agent)))
    turn = spool.turn_of(run, placed, agent, folder, sent)
    return GuardedDirect(backend, turn) if isinstance(backend, Direct) else spool.read(backend, turn)


def _cost(run: Run, name: str, said: "Guarded | GuardedDirect | None") -> dict[str, Any]:
    from raymond.backends.guard import Guarded
    from raymond.machine.agent import SCRIPTS
    from raymond.machine.decide import cost_of

    agent = run.agents.get(name)
    if not said and agent and agent.status == RUNNING and agent.pool != SCRIPTS:
        return cost_of(Spending(cost=run.start.unknown_turn_cost, estimated=True, unknown=True))
    ending = _ending(said)
    if ending:
        return cost_of(ending.spent)
    return cost_of(said.spent()) if isinstance(said, Guarded) else {}


# --- what can be asked


def answer(
    project: Project,
    id: str,
    agent: str,
    text: str,
    *,
    question: int = 0,
    seen: Mapping[str, str] | None = None,
    unseen: bool = False,
    face: Face | None = None,
) -> Delivery:
    """Answer `agent`, or the only one asking (""), if it still asks `question`; 0 stands for what it asks now.

    Refused when a file of the question is another one than it was when the agent asked, unless whoever answers has
    `seen` what it is now (path -> its mark); and when it cannot be shown, unless they answer `unseen`.
    """
    arguments.check_text(text, "the answer")
    arguments.check_text(agent, "the name of the agent")
    asked = _open_question(project, id, agent)
    refused = _why_unanswered(asked, id, seen or {}, unseen) if asked else None
    if refused:
        return refused
    number = question or (asked.number if asked else 0)
    return ask(project, id, "answer", agent=agent, text=text, question=number, face=face)


def _why_unanswered(asked: Question, id: str, seen: Mapping[str, str], unseen: bool) -> Refusal | None:
    """Why an answer is refused: a file of the question cannot be shown, or has changed since the person saw it."""
    found = asked_files.read_all(asked.cwd, asked.files)
    hidden = asked_files.why_hidden(found)
    if hidden and not unseen:
        return Refusal("hidden", hidden, f"bring the file back, or: raymond answer {id} --unseen")
    changed = asked_files.changed(found, asked.files, seen)
    if changed:
        return Refusal("changed", f"{', '.join(changed)} changed since it asked", seen_first(id))
    return None


def seen_first(id: str) -> str:
    """How to answer although a file of the question has changed: whoever answers must have seen it as it is now."""
    return f"answer on a terminal, which shows it first, or bring it back as it was: raymond answer {id}"


def _open_question(project: Project, id: str, agent: str) -> Question | None:
    """The question that is open as far as this process can see: a moment later it may be another one."""
    found = [one for one in open_questions(journal.read(project.run(id)).run) if agent in ("", one.agent)]
    return found[0] if len(found) == 1 else None


def ask(
    project: Project, id: str, kind: Kind, *, force: bool = False, face: Face | None = None, **about: Any
) -> Delivery:
    """Ask `kind` of a run; `about` are the fields of the request that say more."""
    return deliver(project, id, Request(id=_new_id(), kind=kind, **about), force=force, face=face)


def cancel(project: Project, id: str, *, force: bool = False, face: Face | None = None) -> Delivery:
    """End the run for good: its running steps are ended, and it cannot be resumed."""
    return ask(project, id, "cancel", force=force, face=face)


def stop(project: Project, id: str, *, now: bool = False, face: Face | None = None) -> Delivery:
    """Let running steps finish and start nothing new; with `now`, stop them."""
    return ask(project, id, "stop", now=now, face=face)


def finish(project: Project, id: str, agent: str, text: str) -> Delivery:
    """Let `agent` return `text`."""
    arguments.check_text(text, "the result")
    return ask(project, id, "result", agent=agent, text=text)


def check_resume(project: Project, start: RunStarted) -> None:
    """Refuse to let a step resume a run that it may not; that it tried is journaled."""
    refused = inside.refusal(start, "resume")
    if refused:
        ask(project, start.workflow_id, "resume")
        raise UsageError(refused.reason, hint=refused.hint)


def change_limits(
    project: Project, id: str, changes: Mapping[str, Any], *, force: bool = False, face: Face | None = None
) -> Delivery:
    """Replace the limits that are given, allow these tools too, and open these directories to agents."""
    if changes.get("roots"):
        inside.check_person("resume --root")
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()
    }
    # The site rules may forbid the budget, and a tool may not be one.
    config.load(project.tree, flags={name: value for name, value in given.items() if name in KEYS})
    given["allowed_tools"] = given.pop("allow_tools", [])
    given["roots"] = [arguments.real_root(root) for root in given.get("roots", ())]
    return ask(project, id, "limits", force=force, face=face, **given)


def _new_id() -> str:
    import uuid

    return str(uuid.uuid4())


def check_limits(run: Run, changes: Mapping[str, Any]) -> None:
    """Refuse limits that a run which is to continue has reached already: they count from its beginning."""
    id = run.start.workflow_id
    for name, done, what in (
        ("max_iterations", run.iterations, "steps (scripts count, too)"),
        ("max_turns", run.turns, "turns"),
    ):
        flag, given = OPTIONS[name].flags[-1], changes.get(name)
        if given and given <= done:
            hint = f"raymond resume {id} {flag} {done + given} allows {given} more"
            raise UsageError(f"{flag} {given}: {id} has made {done} {what}, so nothing would run", hint=hint)
