"""What was said in a run, step by step: prompts, replies, tools, the output of scripts, and the answers of people."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from raymond import durations
from raymond.faces import clock, dollars, words
from raymond.faces.authored import PRINTED, authored
from raymond.faces.foreign_text import hung, in_margin, spaced, width_of
from raymond.faces.tail import Tail
from raymond.machine.events import AgentStarted, AskEnded, Decision, Event, RunStarted, StepEnded, StepStarted, is_entry
from raymond.machine.label import named
from raymond.steps.talk import in_order, only_tools
from raymond.store.records import Records, is_gone
from raymond.text import visible

NAMES = {
    "sent": "prompt",
    "talk": "worked",
    "tools": "tools",
    "denied": "denied",
    "said": "said",
    "out": "stdout",
    "err": "stderr",
    "decided": "decided",
    "note": "note",
    "error": "error",
}
"""What a transcript holds of a step, in the order in which it is shown, and how it is called."""


class Conversation:
    """Every step in full on stdout, as it ended; an entry is a step or an answer."""

    def __init__(
        self,
        transcript_folder: str,
        tail: Tail,
        *,
        agent: str = "",
        step: int = 0,
        since: float = float("-inf"),
        is_driven: Callable[[], bool] = lambda: True,
    ) -> None:
        self._records = Records(transcript_folder)
        self._tail = tail
        self._agent = agent
        self._step = step
        self._since = since
        self._is_driven = is_driven
        self._folder = ""
        """That of the author's files."""
        self._states: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._began: dict[str, tuple[StepStarted, float]] = {}
        self._is_first = True
        self._shown: dict[str, list[Mapping[str, object]]] = {}
        """What was shown of the steps that run."""
        self._headed: set[tuple[int, int]] = set()
        """Steps and turns of which it was shown since when they run."""
        self._lost: set[int] = set()
        """Those of which it was said that nobody drives them."""

    def show(self, decisions: Sequence[Decision]) -> None:
        """Print what these tell; after the first batch also which steps are running."""
        with clock.of(sys.stdout):
            self._show(decisions)

    def _show(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            for event in decision.events:
                for entry in self._entries(event, decision.time):
                    if decision.time >= self._since:
                        self._tail.put(entry)
        begun = [(event, began) for event, began in self._began.values() if self._wants(event.agent, event.step)]
        is_driven = not begun or self._is_driven()
        for event, began in begun:
            self._unended(event, began, is_driven)
        self._is_first = False
        self._tail.end()

    def _unended(self, begun: StepStarted, began: float, is_driven: bool) -> None:
        """What a step that has not ended was sent, and what it has said since the last look."""
        agent, step = begun.agent, begun.step
        before = self._shown.get(agent, [])
        lines = self._records.so_far(agent, step, begun.turn)
        parts = self._parts(lines, before)
        is_lost = not is_driven and step not in self._lost
        if self._is_first or parts or is_lost:
            how = "continued" if (step, begun.turn) in self._headed else f"running since {clock.instant(began)}"
            self._headed.add((step, begun.turn))
            if is_lost:
                self._lost.add(step)
                how = f"started {clock.instant(began)}, {words.NOT_DRIVEN}"
            self._tail.put(_entry(f"{self._head(step, agent)}, {how}", parts))
        self._shown[agent] = [*lines]

    def _parts(
        self, lines: Sequence[Mapping[str, object]], before: Sequence[Mapping[str, object]]
    ) -> list[tuple[str, str]]:
        """What `lines` tell, without those of `before` if they are of the same record."""
        parts = said(lines, len(before) if lines[:1] == before[:1] else 0)
        return [(NAMES[name], authored(text, self._folder) if name in PRINTED else text) for name, text in parts]

    def _wants(self, agent: str, step: int) -> bool:
        return self._agent in ("", agent) and self._step in (0, step)

    def _entries(self, event: Event, at: float) -> Iterator[str]:
        if isinstance(event, RunStarted):
            self._folder = event.scope_dir
        elif isinstance(event, StepStarted):
            self._began[event.agent] = event, at
        elif isinstance(event, StepEnded):
            turn, began = self._began.pop(event.agent, (None, at))
            if at >= self._since and self._wants(event.agent, event.step):
                yield self._ended(event, dollars.of_step(event, turn.backend if turn else ""), began, at)
            else:
                self._records.skip(event)
            self._shown.pop(event.agent, None)
        elif isinstance(event, AskEnded) and self._wants(event.agent, 0):
            yield _answer(event, self._who(event.agent), at)
        if is_entry(event):
            self._states[event.agent] = event.state
        if isinstance(event, AgentStarted) and event.label:
            self._labels[event.agent] = event.label

    def _who(self, agent: str) -> str:
        return visible(named(agent, self._labels.get(agent, "")))

    def _head(self, step: int, agent: str) -> str:
        return visible(f"step {step}: {self._who(agent)} in {self._states.get(agent, '?')}")

    def _ended(self, event: StepEnded, cost: str, began: float, at: float) -> str:
        took = durations.brief(max(0.0, at - began))
        how = spaced(authored(words.ended(event), self._folder))
        head = (
            f"{self._head(event.step, event.agent)}, {clock.instant(began)}, {how} after {took}"
            f"{', ' if cost else ''}{cost}"
        )
        shown, lines = self._shown.get(event.agent, []), self._records.ended(event)
        return _entry(head, self._parts(lines, shown), [words.GONE] if is_gone(event, lines) else [])


def _entry(head: str, parts: Sequence[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    width = width_of(sys.stdout)
    told = [*hung(head, "  ", width), *notes, *(line for name, text in parts for line in section(name, text, width))]
    return "\n".join(told) + "\n\n"


def said(lines: Sequence[Mapping[str, object]], shown: int = 0) -> list[tuple[str, str]]:
    """What a step was sent, did and said, in the order of `NAMES`, without what the first `shown` lines tell.

    What it did is in the order in which it happened: tools, or `worked` when texts are among them.
    """
    texts = {name: _text(lines[shown:], name) for name in NAMES}
    texts["talk"] = _work(lines)[len(_work(lines[:shown])) :]
    tools = only_tools(texts["talk"])
    if tools is not None:
        texts["talk"] = ""
    texts["tools"] = tools or ""
    return [(name, texts[name]) for name in NAMES if texts[name].strip()]


def _work(lines: Sequence[Mapping[str, object]]) -> str:
    return in_order(_text(lines, "talk"), _text(lines, "tools"))


def _text(lines: Sequence[Mapping[str, object]], name: str) -> str:
    return "".join(str(line[name]) for line in lines if name in line)


def section(name: str, text: str, width: int = 0) -> list[str]:
    """A text under its name: whole, every line inside the margin, and nothing in it for the terminal to obey."""
    return [f"{name}:", *(line.rstrip() for line in in_margin(text.strip("\n"), "  ", width))]


def _answer(event: AskEnded, who: str, at: float) -> str:
    when = clock.instant(at)
    if event.timed_out:
        return f"nobody answered {who} in time, {when}\n\n"
    width = width_of(sys.stdout)
    return "\n".join([*section(f"answer to {who}, {when}", event.answer, width), "", ""])
