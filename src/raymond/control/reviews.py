"""What waits for the review of a person, and what the person decides."""

import os

from msgspec import Struct

from raymond.control import arguments, left_requests, request, runs
from raymond.control.request import Delivery
from raymond.machine.agent import Agent
from raymond.machine.requests import Kind
from raymond.machine.run import Run
from raymond.store import journal, transcripts
from raymond.store.project import Project
from raymond.system.files import contents
from raymond.views.status import only_reviews, waits_for_review

_MOST = 2 << 20
"""Bytes of a text that is shown."""
TEXTS = {
    "changes.diff": "what changed",
    "check.txt": "what the check printed",
    "sealed.txt": "what it printed with the sealed files",
    "control.txt": "what it printed in the same copy with the changed files",
}
"""The files of a review, as people read what is in them."""


class Review(Struct, frozen=True):
    """A check that counts when a person says so."""

    agent: str
    label: str
    state: str
    verdict: str
    reason: str
    changes: tuple[str, ...]
    digest: str
    words: str
    """What the agent said last: why it changed what decides the check, if it was asked."""
    texts: dict[str, str]
    """What each text is -> the text."""


def of_run(project: Project, id: str) -> list[Review]:
    """Those of one run."""
    folder = project.run(id)
    folded = journal.read(folder)
    return [_review(project, folded.run, agent) for agent in waiting(folded.run)]


def waiting(run: Run) -> list[Agent]:
    """The agents whose work waits for a review."""
    if run.final_status:
        return []
    return [agent for agent in run.agents.values() if waits_for_review(agent)]


def nothing_else(project: Project, id: str) -> bool:
    """Whether to resume a run would change nothing, because only a review is missing."""
    folder = project.run(id)
    if not os.path.isdir(folder.seals) or runs.is_driven(folder):  # without gates, its journal is not read for this
        return False
    run = journal.read(folder).run
    return only_reviews(run) and not left_requests.of(project, run).fates


def _review(project: Project, run: Run, agent: Agent) -> Review:
    folder, found = project.run(run.start.workflow_id), agent.visit.review
    assert found is not None
    texts = {}
    for name, what in TEXTS.items():
        text = _read(os.path.join(folder.seals, found.folder, name)) if found.folder else ""
        if text:
            texts[what] = text
    return Review(
        agent=agent.id,
        label=agent.label,
        state=agent.state,
        verdict=found.verdict,
        reason=agent.error,
        changes=found.changes,
        digest=found.digest,
        words=_words(folder.transcripts, agent) if agent.visit.asked_why else "",
        texts=texts,
    )


def _words(folder: str, agent: Agent) -> str:
    """What the agent said in its last turn."""
    last = agent.visit.turns[-1] if agent.visit.turns else 0
    lines = transcripts.TranscriptReader(folder).so_far(agent.id, last) if last else []
    return "".join(str(line["said"]) for line in lines if isinstance(line.get("said"), str)).strip()


def _read(path: str) -> str:
    try:
        return contents(path, _MOST).decode("utf-8", "replace")
    except OSError:
        return ""


def decide(project: Project, id: str, review: Review, *, accepted: bool, reason: str = "") -> Delivery:
    """Accept the change that `review` shows, or reject it and say why."""
    arguments.check_text(reason, "the reason")
    kind: Kind = "accept" if accepted else "reject"
    return request.ask(project, id, kind, agent=review.agent, digest=review.digest, text=reason)
