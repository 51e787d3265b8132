"""Everything a person can ask of a run that exists: one function for each."""

from collections.abc import Mapping
from typing import Any, Literal

from raymond.control import config, exposure, inside, paths
from raymond.control.deliver import Delivery, deliver
from raymond.control.settings import KEYS, OPTIONS
from raymond.drivers.face import Face
from raymond.errors import UsageError
from raymond.language.refusal import Refusal
from raymond.machine.events import RunStarted
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.store import asked_files, journal
from raymond.store.project import Project
from raymond.views.questions import Question, open_questions


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
    exposure.check(text, "the answer")
    exposure.check(agent, "the name of the agent")
    asked = _asked(project, id, agent)
    refused = _unlike(asked, id, seen or {}, unseen) if asked else None
    if refused:
        return refused
    number = question or (asked.number if asked else 0)
    return deliver(project, id, Request(id=_new(), kind="answer", agent=agent, text=text, question=number), face=face)


def _unlike(asked: Question, id: str, seen: Mapping[str, str], unseen: bool) -> Refusal | None:
    """Why an answer is refused: a file of the question cannot be shown, or has changed since the person saw it."""
    found = [asked_files.look(asked.cwd, one.path) for one in asked.files]
    hidden = asked_files.hidden(found)
    if hidden and not unseen:
        return Refusal("hidden", hidden, f"bring the file back, or: raymond answer {id} --unseen")
    changed = asked_files.changed(found, asked.files, seen)
    if changed:
        return Refusal("changed", f"{', '.join(changed)} changed since it asked", seen_first(id))
    return None


def seen_first(id: str) -> str:
    """How to answer although a file of the question has changed: whoever answers must have seen it as it is now."""
    return f"answer on a terminal, which shows it first, or bring it back as it was: raymond answer {id}"


def _asked(project: Project, id: str, agent: str) -> Question | None:
    """The question that is open as far as this process can see: a moment later it may be another one."""
    found = [one for one in open_questions(journal.read(project.run(id)).run) if agent in ("", one.agent)]
    return found[0] if len(found) == 1 else None


def review(
    project: Project, id: str, agent: str, digest: str, *, accepted: bool, text: str = "", face: Face | None = None
) -> Delivery:
    """Say whether the change of a check that `digest` stands for is right."""
    kind: Literal["accept", "reject"] = "accept" if accepted else "reject"
    return deliver(project, id, Request(id=_new(), kind=kind, agent=agent, digest=digest, text=text), face=face)


def cancel(project: Project, id: str, *, force: bool = False, face: Face | None = None) -> Delivery:
    """End the run for good: its running steps are ended, and it cannot be resumed."""
    return deliver(project, id, Request(id=_new(), kind="cancel"), force=force, face=face)


def stop(project: Project, id: str, *, now: bool = False, face: Face | None = None) -> Delivery:
    """Let running steps finish and start nothing new; with `now`, stop them."""
    return deliver(project, id, Request(id=_new(), kind="stop", now=now), face=face)


def pause(project: Project, id: str, agent: str, *, now: bool = False, face: Face | None = None) -> Delivery:
    """End the step of one agent and pause it; the others continue."""
    return deliver(project, id, Request(id=_new(), kind="pause", agent=agent, now=now), face=face)


def move(
    project: Project, id: str, agent: str, state: str, text: str, *, force: bool = False, face: Face | None = None
) -> Delivery:
    """Send `agent` to `state` with `text` as its input."""
    exposure.check(text, "the input")
    request = Request(id=_new(), kind="move", agent=agent, state=state, text=text)
    return deliver(project, id, request, force=force, face=face)


def finish(
    project: Project, id: str, agent: str, text: str, *, force: bool = False, face: Face | None = None
) -> Delivery:
    """Let `agent` return `text`."""
    exposure.check(text, "the result")
    return deliver(project, id, Request(id=_new(), kind="result", agent=agent, text=text), force=force, face=face)


def retry(
    project: Project, id: str, agent: str, *, fresh: bool = False, force: bool = False, face: Face | None = None
) -> Delivery:
    """Let `agent` try again; with `fresh`, without its conversation."""
    return deliver(project, id, Request(id=_new(), kind="retry", agent=agent, fresh=fresh), force=force, face=face)


def give_up(project: Project, id: str, agent: str, *, force: bool = False, face: Face | None = None) -> Delivery:
    """Let `agent` fail for good."""
    return deliver(project, id, Request(id=_new(), kind="give_up", agent=agent), force=force, face=face)


def check_resume(project: Project, start: RunStarted) -> None:
    """Refuse to let a step resume a run that it may not; that it tried is journaled."""
    refused = inside.refusal(start, "resume")
    if refused:
        deliver(project, start.workflow_id, Request(id=_new(), kind="resume"))
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
    given["roots"] = [paths.opened(root) for root in given.get("roots", ())]
    return deliver(project, id, Request(id=_new(), kind="limits", **given), force=force, face=face)


def _new() -> str:
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
