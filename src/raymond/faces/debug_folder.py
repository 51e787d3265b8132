"""A folder with every step's output and every transition: a view over journal and transcripts.

.raymond/debug/ID_20260115_143022/
    main_START_001.json     what step 1 of main was sent and what it said
    main_step_001.raw       every line that its program printed, without secrets
    transitions.log         who asked for what and went where, who answered, and every stop
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from raymond.drivers.face import Quiet
from raymond.faces import words
from raymond.faces.words import with_author_paths
from raymond.language import reading
from raymond.language.tags import Transition, targets
from raymond.machine.agent import file_name
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    AskStarted,
    Decision,
    EvaluatorEnded,
    Event,
    GateEnded,
    RequestTaken,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    StepEnded,
    StepFailed,
    StepInterrupted,
    StepRefused,
    StepStarted,
    WaitEnded,
    WaitStarted,
    is_entry,
)
from raymond.machine.evolve import fold, is_by_driver
from raymond.machine.run import Run
from raymond.machine.sender import Sender, who
from raymond.machine.step_events import PASSED
from raymond.store import exports, journal
from raymond.store.project import Project
from raymond.store.transcripts import TranscriptReader, is_record_gone
from raymond.system.files import make_private, private
from raymond.text import visible
from raymond.views import times

_PIECE = "stream_event"
_GONE = f"unknown, {words.GONE}"
_HELD = 1 << 16
"""Characters of programs' lines that are held back, to be written together."""


class _Typed(msgspec.Struct):
    type: str = ""


class Folder(Quiet):
    """A face that writes files. It never overwrites one, and an error in it never ends the run."""

    def __init__(
        self, path: str, transcript_folder: str, tree: str = "", journal: Callable[[], Iterable[Decision]] = tuple
    ) -> None:
        self.name = path
        self._tree = tree
        self._journal = journal
        """Reads what happened before."""
        self._authored = ""
        """The folder of the author's files."""
        self._records = TranscriptReader(transcript_folder)
        self._steps: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._total = 0.0
        self._begun = False
        self._depths: dict[str, int] = {}
        """How many subtasks each agent is in."""
        self._numbers: dict[str, int] = {}
        """The running or last step of each agent."""
        self._asked: dict[str, str] = {}
        """What the last step of each agent asked for."""
        self._reminders: dict[str, int] = {}
        self._raw: dict[str, list[str]] = {}
        """Lines of programs that are not written yet, by file."""
        self._held = 0

    wants_raw = True

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """Keep what a program prints; a piece of a text is left out, as half of a secret is in no list of secrets."""
        if kind != "raw" or _is_piece(text):
            return
        name = f"{file_name(agent)}_step_{self._numbers.get(agent, 0):03d}.raw"
        self._raw.setdefault(name, []).append(text)
        self._held += len(text)
        if self._held > _HELD:
            self._write_raw()

    def refresh(self, run: Run) -> None:
        """Write what is held."""
        self._write_raw()

    def close(self) -> None:
        """Write what is held."""
        self._write_raw()

    def _write_raw(self) -> None:
        raw, self._raw, self._held = self._raw, {}, 0
        for name, lines in raw.items():
            self._write(name, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))

    @staticmethod
    def beside(project: Project, id: str) -> "Folder":
        """A new folder for a run that is about to be driven."""
        path = first = f"{exports.debug(project.tree)}/{id}_{time.strftime('%Y%m%d_%H%M%S')}"
        number = 1
        while os.path.lexists(path):
            number += 1
            path = f"{first}_{number}"
        folder = project.run(id)
        return Folder(path, folder.transcripts, project.tree, partial(journal.decisions, folder))

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Write what these decisions say."""
        self._authored = run.start.scope_dir if run.begun else ""
        if not self._begun:
            self._resume(run, decisions)
        self.write(decisions)

    def _resume(self, run: Run, decisions: list[Decision]) -> None:
        """Note where the agents of a resumed run were, and what it had cost, when its last driver left it.

        What people did while nobody drove it, such as to answer, is written here: no driver has told of it.
        """
        self._begun = True
        first = decisions[0].seq if decisions else run.seq + 1
        earlier = [decision for decision in self._journal() if decision.seq < first] if first > 1 else []
        driven = max((decision.seq for decision in earlier if is_by_driver(decision)), default=0)
        left = fold(decision for decision in earlier if decision.seq <= driven)
        self._states = {agent.id: agent.state for agent in left.agents.values()}
        self._depths = {agent.id: len(agent.stack) for agent in left.agents.values() if agent.stack}
        self._numbers = {agent.id: agent.step for agent in left.agents.values()}
        self._total = left.cost
        self.write(decision for decision in earlier if decision.seq > driven)

    def write(self, decisions: Iterable[Decision]) -> None:
        """Add the files and lines of `decisions`, which follow those before."""
        for decision in decisions:
            spent = {event.agent: event for event in decision.events if isinstance(event, StepEnded)}
            asked = [event for event in decision.events if isinstance(event, RequestTaken)]
            for event in decision.events:
                self._take(event, decision.time, spent, _by(asked[0].sender) if asked else "")

    def _take(self, event: Event, at: float, spent: Mapping[str, StepEnded], by: str) -> None:
        match event:
            case RunStarted():
                self._authored = event.scope_dir
            case RunResumed():
                self._put(at, "run", "resumed")
            case RunStopped():
                self._put(at, "run", f"stopped ({event.limit or event.kind}): {words.stop(event)}")
            case RunEnded():
                self._put(at, "run", event.status)
            case StepStarted():
                self._sessions[event.agent] = event.session
                self._numbers[event.agent] = event.step
            case StepEnded():
                self._total += event.cost
                self._keep(event)
                if why := self._repeats(event):
                    self._log(at, event.agent, f"{self._states.get(event.agent, '?')} {why}", event)
            case _:
                if told := self._follow(event, by):
                    agent, text = told
                    self._log(at, agent, text, spent.get(agent), event)

    def _follow(self, event: Event, by: str) -> tuple[str, str] | None:
        """Note where an agent goes; which one, and how that is told."""
        was = self._states.get(getattr(event, "agent", ""), "?")
        if is_entry(event):
            self._states[event.agent] = event.state
            self._reminders.pop(event.agent, None)
        match event:
            case AgentStarted():
                return event.agent, f"-> {event.state} ({f'fork by {event.parent}' if event.parent else 'start'})"
            case AgentMoved() | AgentCalled() | AgentReturned() | WaitEnded() | AskEnded():
                deeper = isinstance(event, AgentCalled) - isinstance(event, AgentReturned)
                self._depths[event.agent] = self._depths.get(event.agent, 0) + deeper
                return event.agent, f"{was} -> {event.state} {words.moved(event, by)}"
            case WaitStarted():
                return event.agent, f"{was} -> (wait, then {event.state})"
            case AskStarted():
                return event.agent, f"{was} -> (ask, then {event.state})"
            case AgentEnded():
                self._states.pop(event.agent, None)
                return event.agent, f"{was} -> (result, ended)"
            case AgentFailed():
                return event.agent, f"{was} failed ({event.kind}): {self._named(event.error)}"
            case _:
                return None

    def _repeats(self, event: StepEnded) -> str:
        """Why a step that led nowhere is repeated; empty for any other."""
        match event:
            case GateEnded() if event.verdict != PASSED:
                return words.gate(event)
            case EvaluatorEnded() if event.again:
                return f"evaluator is asked again: {event.reason}"
            case StepRefused():
                count = self._reminders[event.agent] = self._reminders.get(event.agent, 0) + 1
                why = "its share of the budget" if event.capped else "denied tools" if event.blocked else event.reason
                return f"asked again (reminder {count}): {why}"
            case StepInterrupted():
                return f"interrupted{f': {event.cause}' if event.cause else ''}"
            case StepFailed() if event.again:
                return f"failed ({event.kind}), is tried again: {self._named(event.error)}"
            case _:
                return ""

    def _named(self, error: str) -> str:
        return with_author_paths(error, self._authored)

    def _keep(self, event: StepEnded) -> None:
        number = self._steps[event.agent] = self._steps.get(event.agent, 0) + 1
        lines = self._records.ended(event)
        if not isinstance(event, GateEnded | EvaluatorEnded):  # the agent asks, and they decide about that
            self._asked[event.agent] = requested(lines) if lines else _GONE if is_record_gone(event, lines) else ""
        about = {"type": type(event).__name__, **msgspec.to_builtins(event)}
        state = self._states.get(event.agent, "unknown.").rpartition(".")[0][:80]
        name = f"{file_name(event.agent)}_{state}_{number:03d}.json"
        self._write(name, msgspec.json.format(msgspec.json.encode([*lines, about])), new=True)

    def _log(self, at: float, agent: str, text: str, spent: StepEnded | None, event: Event | None = None) -> None:
        lines = [f"{_second(at)} [{_line(agent)}] {_line(text)}"]
        if self._sessions.get(agent):
            lines.append(f"  session_id: {_line(self._sessions[agent])}")
        if spent:
            lines.append(f"  requested: {_line(self._asked.get(agent) or 'nothing')}")
            if event and (actual := _actual(spent, event)):
                lines.append(f"  actual: {_line(actual)}")
            lines.append(f"  stack_depth: {self._depths.get(agent, 0)}")
            lines += [f"  step: {spent.step}", f"  cost: ${spent.cost:.4f}", f"  total_cost: ${self._total:.4f}"]
        if isinstance(event, AgentEnded):
            lines.append(f"  result: {visible(msgspec.json.encode(event.result).decode())}")
        self._write("transitions.log", ("\n".join(lines) + "\n\n").encode())

    def _put(self, at: float, who: str, text: str) -> None:
        """An entry about the run as a whole."""
        self._write("transitions.log", f"{_second(at)} [{who}] {_line(text)}\n\n".encode())

    def _write(self, name: str, data: bytes, *, new: bool = False) -> None:
        if self._tree:
            return exports.append(f"{self.name}/{name}", self._tree, data, new=new)
        make_private(os.path.realpath(self.name))
        with open(os.path.join(self.name, name), "xb" if new else "ab", opener=private) as file:
            file.write(data)


def _is_piece(line: str) -> bool:
    """Whether a line of a program is a part of a text that another line has in full."""
    if _PIECE not in line:
        return False
    try:
        return msgspec.json.decode(line, type=_Typed).type == _PIECE
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False


def _line(text: str) -> str:
    """A text of others as one line that nobody obeys."""
    return visible(" ".join(text.split()))


def _second(at: float) -> str:
    return times.second(int(at)).replace("T", " ")


def requested(lines: Sequence[Mapping[str, object]]) -> str:
    """What a step asked for by its tags, before anything was made of it; empty when it asked for nothing."""
    texts = {name: "".join(str(line.get(name, "")) for line in lines) for name in ("decided", "out", "said")}
    text = texts["decided"] or texts["out"] or texts["said"]
    found = reading.read(text, script=not texts["said"])
    if found.refused:
        return f"refused, {' '.join(found.refused.reason.split())}"
    asked = [" ".join((tag_of(one), *targets(one))) for one in found.transitions]
    return ", ".join(asked)


def tag_of(transition: Transition) -> str:
    """Its tag."""
    return type(transition).__name__.lower()


def _actual(step: StepEnded, event: Event) -> str:
    """What followed instead of what was asked for, or the same, if a gate or an evaluator decided about it."""
    if isinstance(step, EvaluatorEnded) and not isinstance(event, AgentFailed):
        kept = "kept" if step.kept else "by the evaluator"
        return f"{step.actual} ({kept}, {step.verdict or 'default'})" if step.decided else ""
    if isinstance(step, GateEnded) and isinstance(event, AgentMoved) and event.tag == "on_fail":
        return f"{event.tag} {event.state}"
    return ""


def _by(sender: Sender | None) -> str:
    """Who asked for something, if anything tells."""
    if sender and sender.is_person:
        return " by a person"
    return {"step": " by a step", "unknown": " by an unknown process", "": ""}[who(sender)]
