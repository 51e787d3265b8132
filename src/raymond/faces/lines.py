"""One line per event, for a terminal that is not redrawn, a pipe or a log."""

import os
import sys
from typing import TextIO

from raymond.drivers.face import Quiet
from raymond.faces import clock, question, words
from raymond.faces.foreign_text import hung, in_margin, spaced, spoken, width_of
from raymond.machine import budget, prices
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    AskStarted,
    Decision,
    Event,
    StepFailed,
    StepFinished,
    StepStarted,
    WaitEnded,
)
from raymond.machine.label import label_of, named
from raymond.machine.run import Run
from raymond.text import safe, visible

_UNTOLD = (StepStarted, StepFinished)
_SHOWN = ("print", "tool", "note")
"""What steps do that has a line; the rest is for those who watch."""
MARGIN = "    | "
"""Before lines of others, and before what a line of ours has no room for."""
_MOVES = (AgentStarted, AgentMoved, AgentCalled, AgentReturned, WaitEnded, AskEnded)


def output(text: str, width: int) -> str:
    """What a failed script printed last, below the line that tells the failure."""
    return "".join(f"\n{line}" for line in in_margin(text, MARGIN, width)) if text else ""


class Lines(Quiet):
    """One line per event on stderr; what steps print, as they print it."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._states: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._untold: list[tuple[Decision, str]] = []
        """Decisions, and what the run had cost with them; writing many at once is cheap."""

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what is now in the journal; without decisions, note where the agents are."""
        if self._quiet:
            return
        if not decisions:
            self._states = {agent.id: agent.state for agent in run.agents.values()}
            self._labels = {agent.id: agent.label for agent in run.agents.values() if agent.label}
        # The total of an earlier decision leaves out what later ones of the same moment cost.
        total, mark = run.cost, "~" if run.estimated else ""
        told = []
        for decision in reversed(decisions):
            told.append((decision, f"{mark}{prices.show(max(total, 0.0))}"))
            total -= words.cost_of([decision])
        self._untold += reversed(told)
        near = budget.warned(run, total)
        if near:
            self.on_note(near)

    def add(self, decision: Decision, total: str) -> None:
        """Tell one decision, with what the run had cost by then."""
        self._untold.append((decision, total))

    def refresh(self, run: Run | None = None) -> None:
        """Write every line that was not written yet."""
        if self._untold:
            text = "".join(self._lines(decision, total) for decision, total in self._untold)
            self._untold.clear()
            if text:
                self._put(text)

    def _lines(self, decision: Decision, total: str) -> str:
        told = [event for event in decision.events if type(event) not in _UNTOLD]
        if not told:
            return ""
        spent = words.spent(decision)
        with clock.of(self._stream):
            at = clock.instant(decision.time)
            lines = [self._line(event, spent, total) for event in told]
        return "".join(f"{self._fitted(f'[{at}] {line}')}\n" for line in lines if line)

    def _fitted(self, line: str) -> str:
        """A line that may quote others, so that none of it is at the beginning of a line of the terminal."""
        first, *rest = line.split("\n")
        return "\n".join((*hung(first, MARGIN, self._width()), *rest))

    def _line(self, event: Event, spent: dict[str, str], total: str) -> str:
        agent = getattr(event, "agent", "")
        if isinstance(event, AgentStarted) and event.variables:
            self._labels[agent] = event.label or label_of(event.variables)
        text = words.line(event, self._states.get(agent, ""), self._labels.get(agent, ""))
        if text is None:
            return ""
        rest = ""
        if isinstance(event, AskStarted):
            asks = f"{named(agent, self._labels.get(agent, ''))} asks:"
            text, *more = question.beside(asks, event.question, MARGIN, self._width())
            rest = "".join(f"\n{line}" for line in more)
        else:
            text = " ".join(text.splitlines())
            text = spaced(text) if self._width() else visible(text)
        if isinstance(event, StepFailed):
            rest = output(event.output, self._width())
        if isinstance(event, _MOVES):
            self._states[agent] = event.state
        elif isinstance(event, AgentEnded):
            self._states.pop(agent, None)
            self._labels.pop(agent, None)
        cost = f" {spent.pop(agent)} total {total}" if agent in spent else ""
        return f"{text}{cost}{rest}"

    def _width(self) -> int:
        """Cells in a line; 0 when lines may be of any length."""
        return width_of(self._stream)

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """What a step prints, and the tools it uses."""
        if kind not in _SHOWN or (self._quiet and kind != "print"):
            return
        self.refresh()
        mark = "|" if kind == "print" else "*"
        who, width = named(agent, self._labels.get(agent, "")), self._width()
        text = text.removesuffix("\n")
        told = spoken(who, mark, text, width) if width else [f"{who} {mark} {one}" for one in safe(text).split("\n")]
        self._put("".join(f"{line}\n" for line in told))

    def on_note(self, text: str) -> None:
        """Something a person should know, which may quote what others said."""
        self.refresh()
        self._put("".join(f"{visible(line)}\n" for line in text.splitlines()))

    def on_pausing(self, run: Run) -> None:
        """Say what Ctrl-C waits for."""
        self.on_note(words.pausing(run))

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # Nobody is reading any more: the run continues.
            self._stream = open(os.devnull, "w", encoding="utf-8")
