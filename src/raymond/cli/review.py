"""`raymond review`, `accept` and `reject`: show what waits for the review of a person, and carry out the decision.

That is the work of an agent that changed what decides its check, or an item that a loop has set aside.
"""

import sys
from abc import ABC, abstractmethod

import msgspec

from raymond import pasted
from raymond.cli import choice, delivery, prompt
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import AGENT, RUN
from raymond.control import inside, left_requests, reviews, runs
from raymond.control.handle import RunHandle
from raymond.control.request import Delivery
from raymond.control.reviews import Review
from raymond.errors import UsageError
from raymond.faces import words
from raymond.faces.foreign_text import hung, in_margin, width_of
from raymond.faces.lines import CheckLines
from raymond.loops import evidence, person
from raymond.loops.evidence import Evidence
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH
from raymond.text import visible

_MARGIN = "  | "
_CHANGES = ("what changed", evidence.CHANGE)
"""What texts of a review are called that are a difference."""


class Case(ABC):
    """One thing that waits for the review of a person."""

    name: str
    """What stands for it in a command."""
    question: str
    listener: str
    """Who hears why it was rejected."""
    found: Review | Evidence

    def __init__(self, run: RunHandle) -> None:
        self.run = run

    def lines(self) -> list[str]:
        """All of it; nothing of what others wrote is cut or hidden."""
        return self._lines([*self.found.texts])

    def brief(self) -> list[str]:
        """All of it but the difference."""
        return self._lines([one for one in self.found.texts if one not in _CHANGES])

    def change(self) -> list[str]:
        """The difference alone."""
        return self._texts([one for one in self.found.texts if one in _CHANGES])

    def ways(self) -> list[str]:
        """The commands that decide it."""
        return [f"{verb}: raymond {verb} {self.run.id} {self.name}{more}" for verb, more in self._WAYS]

    _WAYS = (("accept", ""), ("reject", " REASON"))

    def accept(self) -> int:
        """Show it, ask, and do what the person says; the exit code."""
        print("\n".join(self.lines()), flush=True)
        if not prompt.can_ask_on_stderr():
            command = f"raymond accept {self.run.id}{self._of_several}"
            raise UsageError(self._unseen, hint=f"type it in a terminal (ssh -t), with no pipe: {command}")
        if not prompt.agrees_on_stderr(self.question):
            print("nothing was accepted", file=sys.stderr)
            return 3
        return self.decide(accepted=True)

    def reject(self, reason: str) -> int:
        """Reject it; without a reason, show it and ask for one."""
        if not reason and prompt.can_ask_on_stderr():
            print("\n".join(self.lines()), flush=True)
            reason = self.ask_why()
        return self.decide(accepted=False, reason=reason)

    def ask_why(self) -> str:
        """Why it is rejected."""
        return prompt.ask_on_stderr(f"why? {self.listener}; Ctrl-C rejects nothing: ")

    @abstractmethod
    def check(self, verb: str) -> None:
        """Refuse `verb` to whoever is no person."""

    @abstractmethod
    def decide(self, *, accepted: bool, reason: str = "") -> int:
        """Carry it out; the exit code."""

    _unseen: str
    _of_several = ""

    @abstractmethod
    def _head(self) -> list[str]:
        """What it is about."""

    def _lines(self, texts: list[str]) -> list[str]:
        width = width_of(sys.stdout)
        shown = [part for one in self._head() for part in hung(visible(one), _MARGIN, width)]
        if self.found.words:
            shown += ["the agent says:", *in_margin(self.found.words, _MARGIN, width)]
        return shown + self._texts(texts)

    def _texts(self, names: list[str]) -> list[str]:
        width, texts = width_of(sys.stdout), self.found.texts
        return [line for one in names for line in (f"{one}:", *in_margin(texts[one].rstrip("\n"), _MARGIN, width))]


class AgentCase(Case):
    """An agent whose green check counts when a person says so."""

    question, listener = "accept this change?", "The agent is told"
    _unseen = "a change of what decides a check is accepted on a terminal, where it can be seen"

    def __init__(self, run: RunHandle, found: Review, *, resumes: bool = True) -> None:
        super().__init__(run)
        self.found, self.name, self._resumes = found, pasted.word(found.agent, "AGENT"), resumes
        self._review = found

    def _head(self) -> list[str]:
        one = self._review
        head = f"{self.run.id}, {words.named(one.agent, one.label)} in {one.state}: {one.verdict}"
        return [head, f"why:    {one.reason}", *(f"sealed: {change}" for change in one.changes)]

    def check(self, verb: str) -> None:
        """Refuse `verb` to agents, and to steps of this run and of others."""
        inside.check_agent(verb)
        inside.check(self.run.start, verb)

    def decide(self, *, accepted: bool, reason: str = "") -> int:
        """Tell the run, which then continues."""
        run, verb = self.run, "accepted" if accepted else "rejected"
        done: Delivery = reviews.decide(run.project, run.id, self._review, accepted=accepted, reason=reason)
        told = delivery.words(done, run.id, self._review.agent)
        if told or not self._resumes:
            print(told or f"{verb}; {left_requests.onward(run.project, run.id)}", file=sys.stderr)
            return 0
        if runs.is_driven(run.project.run(run.id)):
            return 0
        from raymond.cli import resume

        return resume.continue_run(run, attach=False, verb=verb)


class ItemCase(Case):
    """An item that a loop has set aside: it is committed if its check is green with today's tip."""

    question, listener = "commit this?", "The next session is told"
    _unseen = "what was set aside is accepted on a terminal, where it can be seen"

    def __init__(self, run: RunHandle, loop: LoopRun, entry: Entry) -> None:
        super().__init__(run)
        self._loop, self._entry = loop, entry
        if loop.loop == RALPH:  # no queue says it to the next iteration
            self.listener = "It is kept with the run"
        self.found: Evidence = evidence.evidence_of(loop, entry)
        self.name = str(entry.number)
        self._of_several = f" {self.name}"

    def _head(self) -> list[str]:
        one = self.found
        head = f"{self.run.id}, item {one.item}: {one.title}: {one.verdict}"
        return [head, f"why:    {one.reason}", f"saved:  {one.saved}"]

    def check(self, verb: str) -> None:
        """Refuse `verb` to agents, and to every step."""
        inside.check_by_hand(verb)

    def decide(self, *, accepted: bool, reason: str = "") -> int:
        """Commit it, or put it back into the queue."""
        if not accepted:
            print(person.reject(self._loop, self._entry, reason), file=sys.stderr)
            return 0
        done = person.accept(self._loop, self._entry, CheckLines(sys.stderr).tell)
        if done.commit:
            told = f"committed as {done.commit[:12]}"
        elif done.branch:
            there = f"it is on the branch {done.branch}; git merge {done.branch}"
            told = f"it does not fit what was committed since: {there}"
        else:
            told = f"not committed, because its check is not green here: {done.red}; it is still in {self._entry.saved}"
        print(told, file=sys.stderr)
        return 0 if done.commit else 1


def cases(run: RunHandle) -> list[Case]:
    """Everything of a run that waits for a review."""
    agents: list[Case] = [AgentCase(run, one) for one in reviews.of_run(run.project, run.id)]
    return [*agents, *_items(run)]


def _items(run: RunHandle) -> list[ItemCase]:
    if not run.start.loop:
        return []
    loop = LoopRun(run.project, run.read())
    return [ItemCase(run, loop, one) for one in person.waiting(loop)]


def why_kept(run: RunHandle) -> UsageError | None:
    """Why a loop is not removed: items wait for a person; None when none does."""
    found = person.waiting(LoopRun(run.project, run.read()))
    if not found:
        return None
    items = ", ".join(f"{one.number} ({one.title})" for one in found)
    force = f"raymond clean --force {run.id} removes the run, but not what git has in refs/raymond/{run.id}"
    what = f"{run.id} has set items aside that wait for you: {items}"
    return UsageError(what, hint=f"raymond review {run.id} shows them; {force}")


def meant_case(run: RunHandle, verb: str, name: str | None, *, resumes: bool) -> Case:
    """What a person means who wants to accept or reject it: an item of a loop if no agent waits."""
    found = reviews.of_run(run.project, run.id)
    if run.start.loop and not found:
        loop = LoopRun(run.project, run.read())
        if person.waiting(loop):
            inside.check_by_hand(verb)  # before it says which there are
            return ItemCase(run, loop, person.chosen(loop, name))
    inside.check_agent(verb)
    chosen = [one for one in found if not name or name in (one.agent, one.label)]
    if not chosen and name and (others := names_in_review(run)):
        hint = f"if that is the reason: raymond reject {run.id} {pasted.word(others[0], 'AGENT')} "
        hint += pasted.word(name, "REASON")
        raise UsageError(f"there is no agent `{name}` whose work waits for a review", hint=hint)
    if not chosen:
        hint = f"raymond status {run.id} shows what its agents are doing"
        raise UsageError(f"nothing of {run.id} waits for a review", hint=hint)
    if len(chosen) > 1:
        agents = ", ".join(one.agent for one in chosen)
        raise UsageError(f"several agents wait for a review: {agents}", hint=f"raymond review {run.id} shows them")
    case = AgentCase(run, chosen[0], resumes=resumes)
    case.check(verb)
    return case


def names_in_review(run: RunHandle) -> list[str]:
    """What agents and items that wait for a review are called."""
    agents = [name for one in reviews.of_run(run.project, run.id) for name in (one.agent, one.label) if name]
    if agents or not run.start.loop:
        return agents
    found = person.waiting(LoopRun(run.project, run.read()))
    return [name for one in found for name in (str(one.number), one.title, one.agent)]


def can_decide(found: list[Case]) -> bool:
    """Whether a person is at this terminal, and no agent's program types there."""
    if not (found and prompt.can_ask_on_stderr() and sys.stdout.isatty()):
        return False
    try:
        for case in found:
            case.check("review")
    except UsageError:
        return False
    return True


def decide_each(found: list[Case]) -> int:
    """Show each to the person at this terminal, and carry out what the person says; the highest exit code."""
    worst, left = 0, 0
    for number, case in enumerate(found):
        print("\n".join([*([""] if number else []), *case.brief()]), flush=True)
        word = _word(case)
        if word:
            reason = "" if word == "y" else case.ask_why()
            worst = max(worst, case.decide(accepted=word == "y", reason=reason))
        left += not word
    if left:
        print(f"{words.many(left, 'review')} left for later: raymond review {found[0].run.id}", file=sys.stderr)
    return worst


def _word(case: Case) -> str:
    """y, n or nothing, as a person types it; nobody says yes before the difference was shown."""
    change = case.change()
    shown = not change
    while True:
        typed = prompt.ask_on_stderr(
            f"{case.question} y, n{', d shows the difference' if change else ''}, Enter later > "
        ).lower()
        if typed in ("", "n", "no") or (shown and typed in ("y", "yes")):
            return typed[:1]
        if change and typed in ("d", "diff", "y", "yes"):
            print("\n".join(change), flush=True)
            shown = True


@as_command("review")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, as_json: bool) -> int:
    """Show which green checks of run ID do not count yet: what decides them changed; and what a loop has set aside.

    Each with the difference, what the agent said, and what the check printed with and without the change. On a terminal
    it asks about each: y accepts, n rejects and asks why, d shows the difference, Enter leaves it for later.
    """
    run = choice.find(id_, "review")
    found = cases(run)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode([one.found for one in found]) + b"\n")
        sys.stdout.flush()
    elif not found:
        print(f"nothing of {run.id} waits for a review", file=sys.stderr)
    elif can_decide(found):
        return decide_each(found)
    else:
        print("\n\n".join("\n".join([*one.lines(), *one.ways()]) for one in found))
    return 0


@as_command("accept")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@argument("agent", metavar="[AGENT|ITEM]", type=AGENT, required=False)
@option("--no-resume", is_flag=True, help="Only record the decision.")
def accept(id_: str | None, agent: str | None, no_resume: bool) -> int:
    """Accept the change that agent AGENT of run ID made to what decides its check; then the check runs once more.

    It shows the change first and asks, so it needs a terminal. ITEM is the number of an item that a loop has set aside:
    it is checked on top of the branch and committed.
    """
    run = choice.change(id_, "review")
    return meant_case(run, "accept", agent, resumes=not no_resume).accept()


@as_command("reject")
@argument("id_", metavar="ID", type=RUN)
@argument("agent", metavar="[AGENT|ITEM]", type=AGENT, required=False)
@argument("reason", metavar="[REASON]", required=False, default="")
@option("--no-resume", is_flag=True, help="Only record the decision.")
def reject(id_: str, agent: str | None, reason: str, no_resume: bool) -> int:
    """Reject the change that agent AGENT of run ID made to what decides its check: it is told REASON and goes on.

    Without REASON, it shows the change and asks for one. That needs a terminal, as `accept` does. ITEM is the number of
    an item that a loop has set aside: it goes back to the queue, which needs none.
    """
    run = choice.change(id_, "review")
    is_reason = agent and not reason and " " in agent.strip() and agent not in names_in_review(run)
    name = None if is_reason else agent  # a sentence that names nothing is the reason
    return meant_case(run, "reject", name, resumes=not no_resume).reject(reason or (agent or "") * (not name))
