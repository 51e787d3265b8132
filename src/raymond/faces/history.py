"""What happened in a run, told afterwards from its journal and transcripts: as lines, as JSON, or one step in full."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from raymond.faces.lines import Lines
from raymond.language import reading
from raymond.machine.events import Decision, StepEnded
from raymond.store.records import Records
from raymond.text import safe
from raymond.views import times

_TEXTS = ("sent", "said", "tools", "out", "decided", "err", "note", "error")
"""What is shown first of a step."""


def told(records: Records, event: StepEnded) -> Iterator[tuple[str, str]]:
    """What the step that ended with `event` told while it ran, from its transcript: the kind, and the text."""
    reader = None
    lines = records.of(event.agent, event.offset)
    # Reading tags is most of the work, and hardly a step prints.
    prints = "<print" in "".join(str(line.get(name, "")) for line in lines for name in ("out", "said"))
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
    """Lines that are the command's output: when nobody reads them any more, it ends."""

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Text:
    """Decisions as lines on stdout, each after what the step that led to it had printed."""

    def __init__(self, agent: str | None, transcript_folder: str) -> None:
        self._lines = _Lines(sys.stdout)
        self._agent = agent
        self._records = Records(transcript_folder)
        self._cost = 0.0
        self._mark = ""
        self._total = "$0.00"

    def show(self, decisions: Sequence[Decision]) -> None:
        """Print these."""
        for decision in decisions:
            for event in decision.events:
                if isinstance(event, StepEnded):
                    self._end(event)
            kept = _about(decision, self._agent)
            if kept.events:
                self._lines.add(kept, self._total)
        self._lines.refresh()

    def _end(self, event: StepEnded) -> None:
        if event.cost or event.estimated:
            self._cost += event.cost
            self._mark = "~" if event.estimated else self._mark
            self._total = f"{self._mark}${self._cost:.2f}"
        if not self._agent or event.agent == self._agent:
            for kind, text in told(self._records, event):
                self._lines.on_output(event.agent, kind, text)


class Json:
    """Decisions as JSON on stdout, an event a line."""

    def __init__(self, agent: str | None) -> None:
        self._agent = agent

    def show(self, decisions: Sequence[Decision]) -> None:
        """Print these."""
        for decision in decisions:
            for event in _about(decision, self._agent).events:
                fields = {"time": times.instant(decision.time), "seq": decision.seq, **msgspec.to_builtins(event)}
                sys.stdout.write(msgspec.json.encode(fields).decode() + "\n")
        sys.stdout.flush()


def _about(decision: Decision, agent: str | None) -> Decision:
    if not agent:
        return decision
    events = [
        event for event in decision.events if agent in (getattr(event, "agent", ""), getattr(event, "parent", ""))
    ]
    return Decision(seq=decision.seq, time=decision.time, events=events)


def turn(ended: StepEnded, transcript: Sequence[Mapping[str, object]], *, as_json: bool) -> str:
    """One turn of a step in full: what it was sent, what it said, what it cost."""
    about = msgspec.to_builtins(ended)
    if as_json:
        return msgspec.json.encode({"ended": about, "transcript": transcript}).decode()
    return safe("\n".join(_turn(about, transcript)))


def _turn(about: dict[str, Any], lines: Sequence[Mapping[str, object]]) -> list[str]:
    cost = f" ${about['cost']:.2f}" if about.get("cost") else ""
    how = about["type"].removeprefix("Step").lower()
    state = next((line["state"] for line in lines if "state" in line), "?")
    told = [f"step {about['step']}: {about['agent']} in {state}, {how}{cost}"]
    for line in lines:
        for name, value in sorted(line.items(), key=lambda pair: pair[0] not in _TEXTS):
            if name not in ("step", "state"):
                text = str(times.instant(value) if name == "time" and isinstance(value, float) else value).rstrip("\n")
                told.append(f"{name}:\n{_indented(text)}" if "\n" in text else f"{name}: {text}".rstrip())
    return told


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
