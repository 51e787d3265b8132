"""`raymond logs`: what happened in a run, and what each step was sent and said."""

import os
import sys
from typing import Any

import click
import msgspec

from raymond.cli import target
from raymond.control.follow import Follower, told
from raymond.errors import UsageError
from raymond.faces.lines import Lines
from raymond.machine.events import Decision, StepEnded
from raymond.store import transcripts
from raymond.store.project import Project
from raymond.views import times

_TEXTS = ("sent", "said", "tools", "out", "err", "note", "error")
"""What comes first of a step."""


@click.command("logs")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("-f", "--follow", is_flag=True, help="Go on as more happens, until the run ends.")
@click.option("--agent", metavar="A", help="Only what concerns agent A.")
@click.option("--step", type=click.IntRange(1), metavar="N", help="What step N was sent and what it said.")
@click.option("--debug-dir", type=click.Path(file_okay=False), metavar="DIR", help="Write every step as files to DIR.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on stdout.")
def command(id_: str, follow: bool, agent: str | None, step: int | None, debug_dir: str | None, as_json: bool) -> int:
    """Show every line of run ID on stdout, as it was told while it ran."""
    project, id = target.run(id_)
    follower = Follower(project, id)
    decisions = follower.look()
    if agent and not _exists(agent, decisions):
        known = ", ".join(list(follower.run.agents) or list(follower.run.outcomes))
        raise UsageError(f"there is no agent `{agent}` in {id}", hint=f"among them: {known[:200]}")
    if step:
        return _show_step(project, id, decisions, step, as_json)
    if debug_dir:
        return _write_folder(project, id, decisions, debug_dir)
    show = _Json(agent) if as_json else _Text(agent, project.path("transcripts", id))
    show(follower, decisions)
    if follow:
        for more in follower.watch():
            show(follower, more)
    return 0


class _Lines(Lines):
    """Lines that are the whole point: when nobody reads them any more, there is nothing left to do."""

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Text:
    """Decisions as lines, each after what the step that led to it had printed."""

    def __init__(self, agent: str | None, transcripts: str) -> None:
        self._lines = _Lines(sys.stdout)
        self._agent = agent
        self._transcripts = transcripts
        self._cost = 0.0
        self._mark = ""

    def __call__(self, follower: Follower, decisions: list[Decision]) -> None:
        for decision in decisions:
            spent = [event for event in decision.events if isinstance(event, StepEnded)]
            self._cost += sum(event.cost for event in spent)
            if any(event.estimated for event in spent):
                self._mark = "~"
            kept = _about(decision, self._agent)
            for event in kept.events:
                if isinstance(event, StepEnded):
                    for kind, text in told(self._transcripts, event):
                        self._lines.on_output(event.agent, kind, text)
            if kept.events:
                self._lines.add(kept, f"{self._mark}${self._cost:.2f}")
        self._lines.refresh()


class _Json:
    """Decisions as JSON, an event a line."""

    def __init__(self, agent: str | None) -> None:
        self._agent = agent

    def __call__(self, follower: Follower, decisions: list[Decision]) -> None:
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


def _exists(agent: str, decisions: list[Decision]) -> bool:
    return any(getattr(event, "agent", "") == agent for decision in decisions for event in decision.events)


def _show_step(project: Project, id: str, decisions: list[Decision], number: int, as_json: bool) -> int:
    """Every turn of a step: the prompt, the answer, what it cost."""
    folder = project.path("transcripts", id)
    ends = [
        event
        for decision in decisions
        for event in decision.events
        if isinstance(event, StepEnded) and event.step == number
    ]
    if not ends:
        most = max((getattr(event, "step", 0) for one in decisions for event in one.events), default=0)
        raise UsageError(f"step {number} of {id} has not ended", hint=f"the last one is step {most}")
    for end in ends:
        lines = transcripts.read(folder, end.agent, end.offset) if end.offset >= 0 else []
        about = msgspec.to_builtins(end)
        if as_json:
            print(msgspec.json.encode({"ended": about, "transcript": lines}).decode())
        else:
            print("\n".join(_turn(about, lines)))
    return 0


def _turn(about: dict[str, Any], lines: list[dict[str, object]]) -> list[str]:
    cost = f" ${about['cost']:.2f}" if about.get("cost") else ""
    how = about["type"].removeprefix("Step").lower()
    state = next((line["state"] for line in lines if "state" in line), "?")
    shown = [f"step {about['step']}: {about['agent']} in {state}, {how}{cost}"]
    for line in lines:
        for name, value in sorted(line.items(), key=lambda pair: pair[0] not in _TEXTS):
            if name not in ("step", "state"):
                text = str(times.instant(value) if name == "time" and isinstance(value, float) else value).rstrip("\n")
                shown.append(f"{name}:\n{_indented(text)}" if "\n" in text else f"{name}: {text}".rstrip())
    return shown


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _write_folder(project: Project, id: str, decisions: list[Decision], path: str) -> int:
    from raymond.faces import debug_folder

    if os.path.isdir(path) and os.listdir(path):
        raise UsageError(f"{path} is not empty", hint="name a new folder: nothing is overwritten")
    debug_folder.Folder(path, project.path("transcripts", id)).write(decisions)
    print(f"{path} holds every step and transition of {id}", file=sys.stderr)
    return 0
