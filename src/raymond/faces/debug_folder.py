"""A folder with every step's output and every transition: a view over journal and transcripts.

.raymond/debug/ID_20260115_143022/
    main_START_001.json     what step 1 of main was sent and what it said
    transitions.log         who went where, how, and what it cost
"""

import os
import time
from collections.abc import Iterable, Mapping

import msgspec

from raymond.drivers.face import Quiet
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
    Event,
    StepEnded,
    StepStarted,
    WaitEnded,
    WaitStarted,
)
from raymond.machine.run import Run
from raymond.store import exports
from raymond.store.project import Project
from raymond.store.records import Records
from raymond.system.files import make_private, private
from raymond.views import times


class Folder(Quiet):
    """A face that writes files. It never overwrites one, and an error in it never ends the run."""

    def __init__(self, path: str, transcript_folder: str, tree: str = "") -> None:
        self.name = path
        self._tree = tree
        self._records = Records(transcript_folder)
        self._steps: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._total = 0.0
        self._begun = False

    @staticmethod
    def beside(project: Project, id: str) -> "Folder":
        """A new folder for a run that is about to be driven."""
        path = first = f"{exports.debug(project.tree)}/{id}_{time.strftime('%Y%m%d_%H%M%S')}"
        number = 1
        while os.path.lexists(path):
            number += 1
            path = f"{first}_{number}"
        return Folder(path, project.run(id).transcripts, project.tree)

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Write what these decisions say."""
        if not self._begun:
            self._resume(run, decisions)
        self.write(decisions)

    def _resume(self, run: Run, decisions: list[Decision]) -> None:
        """Note where the agents of a resumed run are, and what it has cost."""
        self._begun = True
        self._states = {agent.id: agent.state for agent in run.agents.values()}
        new = [event for decision in decisions for event in decision.events]
        self._total = run.cost - sum(event.cost for event in new if isinstance(event, StepEnded))

    def write(self, decisions: Iterable[Decision]) -> None:
        """Add the files and lines of `decisions`, which follow those before."""
        for decision in decisions:
            spent = {event.agent: event for event in decision.events if isinstance(event, StepEnded)}
            for event in decision.events:
                self._take(event, decision.time, spent)

    def _take(self, event: Event, at: float, spent: Mapping[str, StepEnded]) -> None:
        match event:
            case AgentStarted():
                self._states[event.agent] = event.state
                by = f" (fork by {event.parent})" if event.parent else " (start)"
                self._log(at, event.agent, f"-> {event.state}{by}", None)
            case StepStarted():
                self._sessions[event.agent] = event.session
            case StepEnded():
                self._total += event.cost
                self._keep(event)
            case AgentMoved() | AgentCalled() | AgentReturned() | WaitEnded() | AskEnded():
                was = self._states.get(event.agent, "?")
                self._states[event.agent] = event.state
                self._log(at, event.agent, f"{was} -> {event.state} ({_how(event)})", spent.get(event.agent))
            case WaitStarted() | AskStarted():
                word = "wait" if isinstance(event, WaitStarted) else "ask"
                state = self._states.get(event.agent, "?")
                self._log(at, event.agent, f"{state} -> ({word}, then {event.state})", spent.get(event.agent))
            case AgentEnded():
                state = self._states.pop(event.agent, "?")
                self._log(at, event.agent, f"{state} -> (result, ended)", spent.get(event.agent), event.result)
            case AgentFailed():
                state = self._states.get(event.agent, "?")
                self._log(at, event.agent, f"{state} failed ({event.kind}): {event.error}", spent.get(event.agent))
            case _:
                pass

    def _keep(self, event: StepEnded) -> None:
        number = self._steps[event.agent] = self._steps.get(event.agent, 0) + 1
        lines = self._records.of(event.agent, event.offset)
        about = {"type": type(event).__name__, **msgspec.to_builtins(event)}
        state = self._states.get(event.agent, "unknown.").rpartition(".")[0][:80]
        name = f"{file_name(event.agent)}_{state}_{number:03d}.json"
        self._write(name, msgspec.json.format(msgspec.json.encode([*lines, about])), new=True)

    def _log(self, at: float, agent: str, text: str, spent: StepEnded | None, result: str | None = None) -> None:
        lines = [f"{times.second(int(at)).replace('T', ' ')} [{agent}] {text}"]
        if self._sessions.get(agent):
            lines.append(f"  session_id: {self._sessions[agent]}")
        if spent:
            lines += [f"  step: {spent.step}", f"  cost: ${spent.cost:.4f}", f"  total_cost: ${self._total:.4f}"]
        if result is not None:
            lines.append(f"  result: {msgspec.json.encode(result).decode()}")
        self._write("transitions.log", ("\n".join(lines) + "\n\n").encode())

    def _write(self, name: str, data: bytes, *, new: bool = False) -> None:
        if self._tree:
            return exports.append(f"{self.name}/{name}", self._tree, data, new=new)
        make_private(os.path.realpath(self.name))
        with open(os.path.join(self.name, name), "xb" if new else "ab", opener=private) as file:
            file.write(data)


def _how(event: AgentMoved | AgentCalled | AgentReturned | WaitEnded | AskEnded) -> str:
    match event:
        case AgentMoved():
            return event.tag + (f", instead of {event.instead_of}" if event.instead_of else "")
        case AgentCalled():
            return f"{event.tag}, then {event.then}"
        case AgentReturned():
            return "result, returned"
        case WaitEnded():
            return "wait, timed out" if event.timed_out else "wait"
        case AskEnded():
            return "ask, nobody answered" if event.timed_out else "ask, answered"
