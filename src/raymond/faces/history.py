"""What happened in a run, told afterwards from its journal and transcripts: as lines, as JSON, or one step in full."""

import contextlib
import sys
from collections.abc import Container, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from raymond.faces import clock, dollars, words
from raymond.faces.authored import PRINTED, authored
from raymond.faces.foreign_text import hung, in_margin, width_of
from raymond.faces.lines import Lines, spending
from raymond.faces.tail import Tail
from raymond.language import reading
from raymond.machine.events import AgentFailed, AskEnded, Decision, Event, StepEnded, StepFailed, StepStarted, is_end
from raymond.machine.label import named
from raymond.store import journal, transcripts
from raymond.store.records import Records, is_gone
from raymond.text import safe, visible
from raymond.views import times
from raymond.views.tally import Tally

_TEXTS = ("sent", "talk", "said", "tools", "out", "decided", "err", "note", "error")
"""What is shown first of a step."""
_LOUD = (b'"tools":', b"<p", b'<"')
"""One of these stands in the record of a step that used tools or printed, perhaps with a tag in two lines of it."""
_NAMES = {"out": "stdout", "err": "stderr"}
"""What is called otherwise in a transcript."""


def told(records: Records, event: StepEnded) -> Iterator[tuple[str, str]]:
    """What the step that ended with `event` told while it ran, from its transcript: the kind, and the text."""
    return _told(records.ended(event))


def _prints(lines: Sequence[Mapping[str, object]]) -> bool:
    """Whether a tag that prints may be in what a step said, perhaps in two of its lines."""
    return "<print" in "".join([str(line[name]) for line in lines for name in ("out", "said") if name in line])


def _told(lines: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, str]]:
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

    def __init__(self, tail: Tail) -> None:
        super().__init__(sys.stdout)
        self._tail = tail
        self.columns = 0
        """Cells in a line; 0 when lines may be of any length."""
        self.step = 0
        """The step whose output is told."""
        self._ended: dict[str, int] = {}
        """The steps that ended with the decision that is told, by agent."""

    def skip(self, decision: Decision) -> None:
        """Note where agents are, and tell nothing."""
        self._lines(decision, {}, "")

    def answered(self, event: AskEnded) -> None:
        """Tell what a person answered."""
        self.refresh()
        who = visible(named(event.agent, self._labels.get(event.agent, "")))
        told = in_margin("\n".join(event.answer.splitlines()), f"{who} < ", self._width())
        self._put("".join(f"{line}\n" for line in told))

    def _width(self) -> int:
        return max(1, self.columns - len(f"#{self.step} ")) if self.columns and self.step else self.columns

    def _lines(self, decision: Decision, spent: dict[str, str], total: str) -> str:
        self._ended = {}
        failed = set()
        for event in decision.events:
            if is_end(event):
                self._ended[event.agent] = event.step
            if type(event) is StepFailed:
                failed.add((event.agent, event.kind, event.error))
        return super()._lines(_told_once(decision, failed) if failed else decision, spent, total)

    def _line(self, event: Event, spent: dict[str, str], total: str) -> str:
        text = super()._line(event, spent, total)
        step = self._ended.get(getattr(event, "agent", ""), 0)
        if not text or not step:
            return text
        if is_end(event):
            text = text.replace(f" step {step} ", " ", 1)  # it names its step itself
        return f"#{step} {text}"

    def _put(self, text: str) -> None:
        if self.step:
            text = "".join(f"#{self.step} {line}" for line in text.splitlines(keepends=True))
        self._tail.put_lines(text)


class Text:
    """Decisions as lines on stdout, each after what the step that led to it had printed."""

    def __init__(self, agent: str, transcript_folder: str, tail: Tail, since: float = float("-inf")) -> None:
        self._tail = tail
        self._lines = _Lines(tail)
        self._agent = agent
        self._since = since
        self._folder = transcript_folder
        self._records = Records(transcript_folder)
        self._loud: dict[str, int] = {}
        """Where in the transcript of each agent the last step may be that tells something."""
        self._tally = Tally()

    def show(self, decisions: Sequence[Decision]) -> None:
        """Print these."""
        with journal.without_collector():
            self._show(decisions)

    def _show(self, decisions: Sequence[Decision]) -> None:
        self._lines.columns = width_of(sys.stdout)
        self._loud.clear()  # more may be written since
        for decision in decisions:
            if len(decision.events) == 1 and type(decision.events[0]) is StepStarted:
                self._tally.add(decision.events[0])  # every second one has no line
                continue
            tells = decision.time >= self._since
            for event in decision.events:
                if is_end(event):
                    self._end(event, tells)
                elif type(event) is AskEnded and tells and not event.timed_out and self._wants(event.agent):
                    self._lines.answered(event)
            self._lines.folder = self._tally.start.scope_dir if self._tally.start else ""
            kept, costs = _about(decision, self._agent), spending(self._tally, decision)
            if kept.events and tells:
                self._lines.add(kept, *costs)
            elif kept.events:
                self._lines.skip(kept)
        self._lines.refresh()
        self._tail.end()

    def _wants(self, agent: str) -> bool:
        return self._agent in ("", agent)

    def _end(self, event: StepEnded, tells: bool) -> None:
        if not tells or not self._wants(event.agent):
            return
        if not self._may_tell(event):
            self._records.skip(event)
            return
        lines = self._records.ended(event)
        if not _prints(lines) and not any("tools" in line for line in lines):
            return  # as most steps
        self._lines.refresh()
        self._lines.step = event.step
        for kind, text in _told(lines):
            self._lines.on_output(event.agent, kind, text)
        self._lines.step = 0

    def _may_tell(self, event: StepEnded) -> bool:
        """Whether something of that step may have to be told; most tell nothing, and need not be read then."""
        if event.offset < 0:
            return True
        if event.agent not in self._loud:
            self._loud[event.agent] = -1  # what cannot be read tells nothing
            with contextlib.suppress(OSError):
                self._loud[event.agent] = transcripts.last_of(_LOUD, self._folder, event.agent, event.offset)
        return self._loud[event.agent] >= event.offset


class Json:
    """Decisions as JSON on stdout, an event a line."""

    def __init__(self, agent: str, tail: Tail, since: float = float("-inf")) -> None:
        self._agent = agent
        self._tail = tail
        self._since = since

    def show(self, decisions: Sequence[Decision]) -> None:
        """Print these."""
        for decision in decisions:
            if decision.time < self._since:
                continue
            for event in _about(decision, self._agent).events:
                fields = {"time": times.instant(decision.time), "seq": decision.seq, **msgspec.to_builtins(event)}
                self._tail.put(msgspec.json.encode(fields).decode() + "\n")
        self._tail.end()


def _told_once(decision: Decision, failed: Container[tuple[str, str, str]]) -> Decision:
    """Without failures of agents that are word for word those of steps: the agent, the class and the error."""
    events = [
        one
        for one in decision.events
        if not isinstance(one, AgentFailed) or (one.agent, one.kind, one.error) not in failed
    ]
    return replace(decision, events=events)


def _about(decision: Decision, agent: str) -> Decision:
    if not agent:
        return decision
    events = [
        event for event in decision.events if agent in (getattr(event, "agent", ""), getattr(event, "parent", ""))
    ]
    return Decision(seq=decision.seq, time=decision.time, events=events)


def turn(
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
    with clock.of(sys.stdout):
        text = safe("\n".join(_turn(begun, ended, transcript, state, folder)))
    width = width_of(sys.stdout)
    return (
        "\n".join(one for line in text.split("\n") for one in hung(line.expandtabs(4), "  ", width)) if width else text
    )


def _turn(
    begun: StepStarted, ended: StepEnded | None, lines: Sequence[Mapping[str, object]], state: str, folder: str
) -> list[str]:
    how, cost = words.NOT_DRIVEN, ""
    if ended:
        how, cost = words.ended(ended).partition(" (")[0], dollars.of_step(ended, begun.backend)
    told = [f"step {begun.step}: {begun.agent} in {state}, {how} {cost}".rstrip()]
    if ended and is_gone(ended, lines):
        told.append(words.GONE)
    for line in lines:
        for name, value in sorted(line.items(), key=lambda pair: pair[0] not in _TEXTS):
            if name not in ("step", "state"):
                text = str(clock.instant(value) if name == "time" and isinstance(value, float) else value).rstrip("\n")
                text = authored(text, folder) if name in PRINTED else text
                name = _NAMES.get(name, name)
                told.append(f"{name}:\n{_indented(text)}" if "\n" in text else f"{name}: {text}".rstrip())
    return told


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
