"""What happened in a run, told afterwards: as lines, as JSON, as a conversation, one step in full, or a repair."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from raymond import durations, pasted
from raymond.faces import words
from raymond.faces.foreign_text import hung, in_margin, spaced, width_of
from raymond.faces.lines import UNTOLD, Lines, Tail, step_costs, wrapped
from raymond.faces.words import PRINTED_FIELDS, dollars, with_author_paths
from raymond.language import reading
from raymond.machine import prices
from raymond.machine.agent import named
from raymond.machine.events import (
    AgentFailed,
    AgentStarted,
    AskEnded,
    Decision,
    Event,
    LimitsChanged,
    RunStarted,
    RunStopped,
    StepEnded,
    StepFailed,
    StepStarted,
    is_end,
    is_entry,
)
from raymond.steps.talk import in_order, only_tools
from raymond.store import transcripts
from raymond.store.repair import LostStep, Repair
from raymond.store.transcripts import TranscriptReader, is_record_gone
from raymond.text import safe, visible
from raymond.views import times
from raymond.views.cost import Tally

_SHOWN_FIRST = ("sent", "talk", "said", "tools", "out", "decided", "err", "note", "error")
"""What is shown first of a step."""
_LOUD = (b'"tools":', b"<p", b'<"')
"""One of these stands in the record of a step that used tools or printed, perhaps with a tag in two lines of it."""
_FIELD_NAMES = {"out": "stdout", "err": "stderr"}
"""What is called otherwise in a transcript."""

PARTS = {
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


def told_by_step(records: TranscriptReader, event: StepEnded) -> Iterator[tuple[str, str]]:
    """What the step that ended with `event` told while it ran, from its transcript: the kind, and the text."""
    return _told_in(records.ended(event))


def _prints(lines: Sequence[Mapping[str, object]]) -> bool:
    """Whether a tag that prints may be in what a step said, perhaps in two of its lines."""
    return "<print" in "".join([str(line[name]) for line in lines for name in ("out", "said") if name in line])


def _told_in(lines: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    reader = None
    prints = _prints(lines)  # reading tags is most of the work, and hardly a step does
    for line in lines:
        for name, kind in (("tools", "tool"), ("out", "text"), ("said", "text")):
            text = str(line.get(name, ""))
            if not text.strip():
                continue
            yield kind, text.strip()
            if kind == "text" and prints:
                reader = reader or reading.Reader(script=name == "out")
                yield from (("print", shown) for shown in reader.feed(text))
    if reader:
        yield from (("print", shown) for shown in reader.close().prints)


class _Lines(Lines):
    """The lines of a command's output, each with the number of the step it tells of."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)
        self.told: list[str] = []
        """What is to be printed."""
        self.columns = 0
        """Cells in a line; 0 when lines may be of any length."""
        self.step = 0
        """The step whose output is told."""

    def tell_decision(self, decision: Decision, spent: dict[str, str], total: str) -> None:
        """Tell one decision: like `add`, with the numbers of the steps that ended with it."""
        ended: dict[str, int] = {}
        failed: list[StepFailed] = []
        for event in decision.events:
            if is_end(event):
                ended[event.agent] = event.step
                if type(event) is StepFailed:
                    failed.append(event)
        at = ""
        for event in _without_repeats(decision.events, failed) if failed else decision.events:
            text = "" if type(event) in UNTOLD else self._line(event, spent, total, self.columns)
            if not text:
                continue
            if step := ended.get(getattr(event, "agent", "")):
                if is_end(event):
                    text = text.replace(f" step {step} ", " ", 1)  # it names its step itself
                text = f"#{step} {text}"
            at = at or f"[{words.instant(decision.time)}] "
            self.told.append(f"{wrapped(at + text, self.columns) if self.columns else at + text}\n")

    def skip(self, decision: Decision) -> None:
        """Note where agents are, and tell nothing."""
        for event in decision.events:
            self.follow(event)

    def answered(self, event: AskEnded) -> None:
        """Tell what a person answered."""
        who = visible(named(event.agent, self._labels.get(event.agent, "")))
        told = in_margin("\n".join(event.answer.splitlines()), f"{who} < ", self._width())
        self._put("".join(f"{line}\n" for line in told))

    def _width(self) -> int:
        return max(1, self.columns - len(f"#{self.step} ")) if self.columns and self.step else self.columns

    def _put(self, text: str) -> None:
        if self.step:
            text = "".join(f"#{self.step} {line}" for line in text.splitlines(keepends=True))
        self.told.append(text)


class TextHistory:
    """Decisions as lines on stdout, each after what the step that led to it had printed."""

    def __init__(self, agent: str, transcript_folder: str, tail: Tail, since: float = float("-inf")) -> None:
        self._tail = tail
        self._lines = _Lines()
        self._agent = agent
        self._since = since
        self._folder = transcript_folder
        self._records = TranscriptReader(transcript_folder)
        self._loud: dict[str, int] = {}
        """Where in the transcript of each agent the last step may be that tells something."""
        self._tally = Tally()

    def show(self, decisions: Iterable[Decision]) -> None:
        """Print these, all at once: the last of them may turn out to be damaged."""
        self._lines.columns = width_of(sys.stdout)
        self._loud.clear()  # more may be written since
        with words.times_for(sys.stdout):
            for decision in decisions:
                self._show(decision)
        told, self._lines.told = self._lines.told, []
        self._tail.put_lines("".join(told))
        self._tail.end()

    def _show(self, decision: Decision) -> None:
        events = decision.events
        if len(events) == 1 and type(events[0]) is StepStarted:
            self._tally.add(events[0])  # every second one has no line
            return
        kept = _events_about(decision, self._agent) if self._agent else decision
        tells = decision.time >= self._since
        for event in kept.events if tells else ():
            if is_end(event):
                self._end(event)
            elif type(event) is AskEnded and not event.timed_out:
                self._lines.answered(event)
        costs = step_costs(self._tally, decision)
        self._lines.folder = self._tally.start.scope_dir if self._tally.start else ""
        if tells:
            self._lines.tell_decision(kept, *costs)
        else:
            self._lines.skip(kept)

    def _end(self, event: StepEnded) -> None:
        if 0 <= event.offset > self._last_loud(event.agent, event.offset):
            self._records.skip(event)  # most steps tell nothing, and need not be read then
            return
        lines = self._records.ended(event)
        if not _prints(lines) and not any("tools" in line for line in lines):
            return  # as most steps
        self._lines.step = event.step
        for kind, text in _told_in(lines):
            self._lines.on_output(event.agent, kind, text)
        self._lines.step = 0

    def _last_loud(self, agent: str, offset: int) -> int:
        """Where the last thing may be, from the first `offset` of that agent on, that has to be told."""
        if agent not in self._loud:
            self._loud[agent] = -1  # what cannot be read tells nothing
            with contextlib.suppress(OSError):
                self._loud[agent] = transcripts.find_last(_LOUD, self._folder, agent, offset)
        return self._loud[agent]


class JsonHistory:
    """Decisions as JSON on stdout, an event a line."""

    def __init__(self, agent: str, tail: Tail, since: float = float("-inf")) -> None:
        self._agent = agent
        self._tail = tail
        self._since = since

    def show(self, decisions: Iterable[Decision]) -> None:
        """Print these, all at once."""
        told = list[str]()
        for decision in decisions:
            if decision.time < self._since:
                continue
            at = times.instant(decision.time)
            for event in _events_about(decision, self._agent).events:
                fields = {"time": at, "seq": decision.seq, **msgspec.to_builtins(event)}
                told.append(msgspec.json.encode(fields).decode() + "\n")
        self._tail.put_all(told)
        self._tail.end()


def _without_repeats(events: Iterable[Event], failed: Iterable[StepFailed]) -> list[Event]:
    """Without failures of agents that are word for word those of steps: the agent, the class and the error."""
    told = {(one.agent, one.kind, one.error) for one in failed}
    return [one for one in events if not isinstance(one, AgentFailed) or (one.agent, one.kind, one.error) not in told]


def _events_about(decision: Decision, agent: str) -> Decision:
    if not agent:
        return decision
    events = [
        event for event in decision.events if agent in (getattr(event, "agent", ""), getattr(event, "parent", ""))
    ]
    return Decision(seq=decision.seq, time=decision.time, events=events)


def turn_in_full(
    begun: StepStarted,
    ended: StepEnded | None,
    transcript: Sequence[Mapping[str, object]],
    *,
    state: str = "?",
    folder: str = "",
    as_json: bool = False,
) -> str:
    """One turn of a step of `state` in full: what it was sent, said and cost; `folder` has the author's files."""
    if as_json:
        about = msgspec.to_builtins(ended) if ended else None
        return msgspec.json.encode({"ended": about, "transcript": transcript}).decode()
    with words.times_for(sys.stdout):
        text = safe("\n".join(_turn_lines(begun, ended, transcript, state, folder)))
    width = width_of(sys.stdout)
    return (
        "\n".join(one for line in text.split("\n") for one in hung(line.expandtabs(4), "  ", width)) if width else text
    )


def _turn_lines(
    begun: StepStarted, ended: StepEnded | None, lines: Sequence[Mapping[str, object]], state: str, folder: str
) -> list[str]:
    how, cost = words.NOT_DRIVEN, ""
    if ended:
        how, cost = words.ended(ended).partition(" (")[0], words.step_cost(ended, begun.backend)
    told = [f"step {begun.step}: {begun.agent} in {state}, {how} {cost}".rstrip()]
    if ended and is_record_gone(ended, lines):
        told.append(words.GONE)
    for line in lines:
        for name, value in sorted(line.items(), key=lambda pair: pair[0] not in _SHOWN_FIRST):
            if name not in ("step", "state"):
                text = str(words.instant(value) if name == "time" and isinstance(value, float) else value).rstrip("\n")
                text = with_author_paths(text, folder) if name in PRINTED_FIELDS else text
                name = _FIELD_NAMES.get(name, name)
                told.append(f"{name}:\n{_indented(text)}" if "\n" in text else f"{name}: {text}".rstrip())
    return told


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


# As a conversation


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
        self._records = TranscriptReader(transcript_folder)
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

    def show(self, decisions: Iterable[Decision]) -> None:
        """Print what these tell; after the first batch also which steps are running."""
        with words.times_for(sys.stdout):
            self._show(decisions)

    def _show(self, decisions: Iterable[Decision]) -> None:
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
            how = "continued" if (step, begun.turn) in self._headed else f"running since {words.instant(began)}"
            self._headed.add((step, begun.turn))
            if is_lost:
                self._lost.add(step)
                how = f"started {words.instant(began)}, {words.NOT_DRIVEN}"
            self._tail.put(_conversation_entry(f"{self._head(step, agent)}, {how}", parts))
        self._shown[agent] = [*lines]

    def _parts(
        self, lines: Sequence[Mapping[str, object]], before: Sequence[Mapping[str, object]]
    ) -> list[tuple[str, str]]:
        """What `lines` tell, without those of `before` if they are of the same record."""
        parts = said(lines, len(before) if lines[:1] == before[:1] else 0)
        return [
            (PARTS[name], with_author_paths(text, self._folder) if name in PRINTED_FIELDS else text)
            for name, text in parts
        ]

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
                yield self._ended(event, words.step_cost(event, turn.backend if turn else ""), began, at)
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
        how = spaced(with_author_paths(words.ended(event), self._folder))
        head = (
            f"{self._head(event.step, event.agent)}, {words.instant(began)}, {how} after {took}"
            f"{', ' if cost else ''}{cost}"
        )
        shown, lines = self._shown.get(event.agent, []), self._records.ended(event)
        return _conversation_entry(
            head, self._parts(lines, shown), [words.GONE] if is_record_gone(event, lines) else []
        )


def _conversation_entry(head: str, parts: Sequence[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    width = width_of(sys.stdout)
    told = [*hung(head, "  ", width), *notes, *(line for name, text in parts for line in section(name, text, width))]
    return "\n".join(told) + "\n\n"


def said(lines: Sequence[Mapping[str, object]], shown: int = 0) -> list[tuple[str, str]]:
    """What a step was sent, did and said, in the order of `PARTS`, without what the first `shown` lines tell.

    What it did is in the order in which it happened: tools, or `worked` when texts are among them.
    """
    texts = {name: _joined(lines[shown:], name) for name in PARTS}
    texts["talk"] = _work(lines)[len(_work(lines[:shown])) :]
    tools = only_tools(texts["talk"])
    if tools is not None:
        texts["talk"] = ""
    texts["tools"] = tools or ""
    return [(name, texts[name]) for name in PARTS if texts[name].strip()]


def _work(lines: Sequence[Mapping[str, object]]) -> str:
    return in_order(_joined(lines, "talk"), _joined(lines, "tools"))


def _joined(lines: Sequence[Mapping[str, object]], name: str) -> str:
    return "".join(str(line[name]) for line in lines if name in line)


def section(name: str, text: str, width: int = 0) -> list[str]:
    """A text under its name: whole, every line inside the margin, and nothing in it for the terminal to obey."""
    return [f"{name}:", *(line.rstrip() for line in in_margin(text.strip("\n"), "  ", width))]


def _answer(event: AskEnded, who: str, at: float) -> str:
    when = words.instant(at)
    if event.timed_out:
        return f"nobody answered {who} in time, {when}\n\n"
    width = width_of(sys.stdout)
    return "\n".join([*section(f"answer to {who}, {when}", event.answer, width), "", ""])


# A repair of the journal


def repair_lines(done: Repair) -> Iterator[str]:
    """Where the journal was cut, what was lost with that, and what still holds."""
    yield f"cut at line {done.line}; the whole journal is kept in {done.copy}"
    if done.decisions:
        yield f"lost after it: {words.many(done.decisions, 'good decision')}"
    if done.cost:
        yield f"their cost still counts: {dollars(done.cost - done.scripted, done.scripted)}"
    for step in done.steps if not done.is_over else ():
        yield f"  {_lost_step(step)}"
    for event in done.standing:
        yield f"still holds: {words.stop(event) if isinstance(event, RunStopped) else ', '.join(_limits(event))}"


def _lost_step(step: LostStep) -> str:
    name = f"step {step.number} of {step.agent}" + (f" ({step.state})" if step.state else "")
    unless = ", unless its reply is found" if step.is_kept else ""
    return f"{name} had {'finished' if step.finished else 'begun'} and will run again{unless}"


def _limits(event: LimitsChanged) -> Iterator[str]:
    if event.budget is not None:
        yield f"budget {prices.show(event.budget)}" if event.budget else "no budget"
    for name, count in (("max_iterations", event.max_iterations), ("max_turns", event.max_turns)):
        if count is not None:
            yield f"{name} {count or 'unlimited'}"
    if event.max_time is not None:
        yield f"max_time {durations.show(event.max_time) if event.max_time else 'unlimited'}"
    yield from (pasted.flag("--allow-tool", tool, "TOOL") for tool in event.allowed_tools)
    yield from (pasted.flag("--root", root, "DIR") for root in event.roots)
