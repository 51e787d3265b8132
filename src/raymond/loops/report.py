"""The report of a run: what was done, what failed, and what a person should do next; of a loop, all of it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import time

from msgspec import Struct

from raymond import pasted
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.control.runs import RunRow
from raymond.faces import words
from raymond.faces.summary import limit_flag, next_command
from raymond.loops import evidence, state
from raymond.loops.branch import BASE, TIP
from raymond.loops.documents import PRD, SPECS
from raymond.loops.formats import foreign_text
from raymond.loops.formats.foreign_text import code, error_line, one_line, prose
from raymond.loops.formats.records import duration
from raymond.loops.item_run import explain
from raymond.loops.ledger import OWN_CHECK, PENDING, RED, REJECTED, REVIEW, Entry, Ledger
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH, SESSION, STORIES, TASKS
from raymond.loops.step import FAILS
from raymond.machine.agent import ASKING, FAILED, Agent
from raymond.machine.events import AskEnded, GateEnded, StepFinished, StepStarted
from raymond.machine.run import Run
from raymond.store import journal
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.store.transcripts import TranscriptReader
from raymond.system import git
from raymond.views.status import failed_agents, waits_for_review
from raymond.workspace import publish

_RED = ("failed", "timed out")

_LONGEST_WHY = 300

_HOW = {
    "complete": "completed: every open item was tried",
    "limit": "limit: the maximum of {most} was reached",
    "stopped": "stopped: {why}",
    "done": "completed: {why}",
    "exhausted": "limit: {why}",
    "impossible": "failed: {why}",
    "stuck": "stopped, stuck: {why}",
    "refused": "refused before an agent was paid: {why}",
    "red": "failed: {why}",
}
_ANSWERS = {"PAUSE.py": "continue", "MANUAL.py": "yes"}
"""The word with which each question lets the loop go on."""
NO_TASKS = "it has no tasks"
"""How the reason begins why a story cannot be worked on."""
_EXCERPT = 300
_REASONS = 3000
"""Characters of why an item waits for a person: all of it, as a rule."""
_COMMIT = 12
_WHO_AND_WHERE = ("--backend", "--workflow", "--docs")
"""Flags that also count when a person is asked about an item."""
_FAILURES = 5


# How often an agent said that it was done while the check was red


class Claims(Struct):
    """What checks had to say against agents of a run."""

    count: int = 0
    """How often an agent was wrong about being done."""
    red: dict[str, str] = {}
    """What the last red check of each agent printed."""


def claims_of(folder: RunFolder, is_claim: Callable[[str], bool] | None = None) -> Claims:
    """The claims of a run by its journal, and by its transcripts where a check was red.

    Without `is_claim`, every agent that has ended its turn claims to be done; a script never does.
    """
    records, found, turns = TranscriptReader(folder.transcripts), Claims(), dict[str, list[StepFinished | AskEnded]]()
    answers: dict[str, bool] = {}

    def said(event: StepFinished | AskEnded) -> str:
        if isinstance(event, AskEnded):
            return event.answer
        return "".join(str(line.get("said", "")) for line in records.ended(event))

    for decision in journal.decisions(folder):
        for event in decision.events:
            if isinstance(event, StepStarted) and not event.phase:
                answers[event.agent] = bool(event.backend)
            elif isinstance(event, StepFinished | AskEnded):
                turns.setdefault(event.agent, []).append(event)
            elif isinstance(event, GateEnded) and event.verdict in _RED:
                found.red[event.agent] = event.output
                last = map(said, reversed(turns.pop(event.agent, [])))
                found.count += is_claim(next(filter(None, last), "")) if is_claim else answers.get(event.agent, False)
    return found


class Failure(Struct, frozen=True):
    """Something that did not count, and why."""

    title: str
    why: str


class Report(Struct, frozen=True, kw_only=True):
    """What a run came to; its JSON is what `raymond summary --json` prints of it."""

    run: RunRow
    done: list[str] = []
    failed: list[Failure] = []
    claimed_while_red: int = 0
    """How often an agent said that it was done while its check was red."""
    next: list[str] = []
    """What a person should do, with the commands."""


def report_of(row: RunRow) -> Report:
    """The report of a run."""
    project = runs.project_of(row)
    run = RunHandle(project, row.workflow_id).read()
    return _of_loop(row, LoopRun(project, run)) if run.start.loop else _of_run(row, run, project)


def whole_report(row: RunRow) -> str:
    """All that there is to tell of a loop; empty for other runs."""
    project = runs.project_of(row)
    run = RunHandle(project, row.workflow_id).read()
    loop = LoopRun(project, run) if run.start.loop else None
    return text(loop) + elsewhere(loop) if loop else ""


def _of_loop(row: RunRow, loop: LoopRun) -> Report:
    ledger = loop.ledger
    red = [one for one in ledger.entries[-1:] if one.verdict == RED]  # an iteration after a red one went on from there
    failed = [one for one in ledger.failed if one.verdict != RED] + red
    return Report(
        run=row,
        done=[one.title for one in ledger.done if one.verdict != PENDING],
        failed=[Failure(one.title, f"{one.verdict}: {error_line(one.error, _LONGEST_WHY)}") for one in failed],
        claimed_while_red=claims_of(loop.project.run(loop.id), foreign_text.claims_done).count,
        next=[*filter(None, [place(loop)]), *advice(loop)],
    )


def _of_run(row: RunRow, run: Run, project: Project) -> Report:
    said = claims_of(project.run(row.workflow_id))
    errors = {f"{words.who(one)} in {one.state}": (words.stuck(one), one.id) for one in failed_agents(run)}
    errors |= {f"the gate of {state}": ("it stayed red", agent) for agent, state in run.red.items()}
    failed = [
        Failure(title, error_line(f"{why}\n{said.red.get(agent, '')}", _LONGEST_WHY))
        for title, (why, agent) in errors.items()
    ]
    then = f"raymond attach {row.workflow_id}" if row.driven else next_command(run)
    is_done = row.status == "completed" and not run.saved
    return Report(run=row, failed=failed, claimed_while_red=said.count, next=[] if is_done else [then])


# The summary of a loop


def how(loop: LoopRun) -> str:
    """How the loop ended, or why it does not go on."""
    ledger = loop.ledger
    if ledger.ended == "complete" and ledger.exit_code:
        return f"every item was tried: {ledger.text}"
    if ledger.ended:
        most = words.many(loop.settings.most, loop.settings.unit)
        return _HOW[ledger.ended].format(most=most, why=ledger.why or "on request")
    if loop.run.final_status == "failed":
        return f"failed: {one_line(failure(loop.run))}"
    if loop.run.final_status == "cancelled":
        return "cancelled"
    if loop.is_driven:
        return "not yet: it is running"
    if loop.leased or loop.rests:
        return f"waits for {_resume(loop)}"
    if runs.undriven_status(loop.run) == runs.INTERRUPTED:
        return "interrupted: its process is gone"
    broken = next((one.question for one in loop.run.agents.values() if one.question.startswith(FAILS)), "")
    why = ledger.why or broken.partition("\n")[0] or words.reason(loop.run) or "it waits for a person"
    return why if why.startswith("paused ") else f"paused: {why}"


def failure(run: Run) -> str:
    """Why a loop has failed: the error of the first agent that did."""
    errors = (one.error for one in run.agents.values() if one.status == FAILED and one.error)
    return next(errors, "") or words.reason(run) or words.failures(run)


def text(loop: LoopRun) -> str:
    """The whole summary, as markdown."""
    return "\n".join(_lines(loop)).rstrip("\n") + "\n"


def elsewhere(loop: LoopRun) -> str:
    """What a person who is elsewhere has to know of its commands; empty for one who is not."""
    there = place(loop)
    return f"\nits commands are for another folder: {there}\n" if there else ""


def place(loop: LoopRun) -> str:
    """How to get where its commands are to be typed; empty if that is here."""
    folder = loop.checkout.cwd
    return "" if os.path.realpath(folder) == os.path.realpath(os.getcwd()) else f"cd {pasted.word(folder, 'PROJECT')}"


def _lines(loop: LoopRun) -> Iterator[str]:
    ledger, run = loop.ledger, loop.run
    unit = words.plural(loop.settings.unit).capitalize()
    yield f"# {loop.loop} {loop.id}"
    yield ""
    yield f"- Ended: {one_line(how(loop))}"
    end = time() if loop.is_driven else run.now
    yield f"- Run window: {_time(run.started_at)} to {_time(end)} ({duration(end - run.started_at)})"
    yield f"- {unit} used: {used(ledger.sessions, loop.settings.most)}"
    yield f"- Success rate: {rate(ledger)}"
    if wrong := claims_of(loop.project.run(loop.id), foreign_text.claims_done).count:
        yield f"- Wrong: the agent said {words.many(wrong, 'time')} that it was done while the check was red"
    yield f"- Cost: {cost(loop)}"
    commits = [one.commit[:_COMMIT] for one in ledger.entries if one.commit]
    named = f" ({', '.join(commits)})" if commits else ""
    if loop.settings.branch:
        yield f"- Commits: {len(commits)}{named} on {loop.branch.shown if loop.has_branch else loop.settings.branch}"
    if loop.has_branch and (behind := loop.branch.behind()):
        yield f"- Behind: {loop.settings.branch} lacks {words.many(behind, 'commit')}: it is checked out, or was moved"
    yield f"- Workspace: {loop.settings.way}{f' ({one_line(loop.settings.why)})' if loop.settings.why else ''}"
    yield from _section("Completed", (_completed(one) for one in ledger.done if one.verdict != PENDING))
    yield from _section("Waits for your judgement", (_completed(one) for one in ledger.done if one.verdict == PENDING))
    repaired = ledger.repaired()
    yield from _section(
        "Failed", (_failed(one, repaired.get(one.key, "")) for one in ledger.failed if one.verdict != RED)
    )
    yield from _section("Red", map(_failed, ledger.red))
    yield from _section("Without a check and without a change", (one_line(one.title) for one in ledger.idle))
    yield from _section(
        "Blocked, skipped and proposed", (f"{one_line(title)}: {one_line(why)}" for title, why in ledger.skipped)
    )
    by_agents = (f"{one_line(one.title)}: {one_line(explain(note))}" for one, note in ledger.named())
    yield from _section("Noticed", [*by_agents, *ledger.noticed])
    yield from _section("Remaining", (one_line(title) for title in remaining(loop)))
    yield from _section("What to do next", advice(loop))
    if ledger.closing:
        yield from ("", "## In the words of an agent", "", prose(ledger.closing, 3).rstrip())


def used(count: int, most: int) -> str:
    """How many of its items a loop has begun, of how many."""
    return f"{count} of {most}" if most else f"{count} (no limit)"


def cost(loop: LoopRun) -> str:
    """What it cost, as far as that is known."""
    if loop.settings.internal:
        return "unknown: paid by the program that did the items"
    why = f" ({words.estimate(loop.run.start, loop.run.programs)})" if loop.run.estimated else ""
    return f"{words.money(loop.run)}{why}"


def rate(ledger: Ledger) -> str:
    """The share of the items that were worked on and count, in percent and as a fraction."""
    own = sum(one.verdict == OWN_CHECK for one in ledger.done)
    open_ = sum(one.verdict == PENDING for one in ledger.done)
    done = len(ledger.done) - own - open_
    all_ = done + len(ledger.failed)
    apart = f"; apart from {words.many(own, 'item')} with a check of an agent's own" if own else ""
    apart += f"; apart from {words.many(open_, 'item')} that a person has to judge" if open_ else ""
    none = "an item was begun, and none has ended" if ledger.open else "nothing was worked on"
    none = "nothing was changed" if ledger.idle else none
    return f"{round(100 * done / all_)}% ({done}/{all_}){apart}" if all_ else f"{none}{apart}"


def all_remaining(loop: LoopRun) -> list[str]:
    """The same, each of them, also of a long queue."""
    return [one.title for one in loop.selection().ready] if loop.ledger.unlisted else remaining(loop)


def remaining(loop: LoopRun) -> list[str]:
    """The titles that can still be worked on."""
    if loop.ledger.ended:
        again = [one.title for one in loop.ledger.failed if one.verdict == REJECTED and loop.loop != RALPH]
        return [*again, *loop.ledger.left]
    if loop.loop == RALPH:
        return []
    opened = loop.ledger.open
    return [*([opened.title] if opened else []), *(one.title for one in loop.selection().ready)]


def _section(title: str, items: "Iterator[str] | map[str] | list[str]") -> Iterator[str]:
    found = list(items)
    if found:
        yield from ("", f"## {title}", "", *(f"- {one}" for one in found))


def _completed(entry: Entry) -> str:
    check = f": {code(entry.check)}" if entry.check else ""
    commit = f", commit {entry.commit[:_COMMIT]}" if entry.commit else ""
    log = f", {entry.log}" if entry.log else ""
    wrote = f"; the check wrote {', '.join(map(one_line, entry.wrote))}" if entry.wrote else ""
    return f"{one_line(entry.title)} ({entry.verdict}{check}, {duration(entry.seconds)}{commit}{log}){wrote}"


def _failed(entry: Entry, repaired: str = "") -> str:
    most = _REASONS if entry.verdict == REVIEW else _EXCERPT
    kept = f"; its changes are kept in {entry.saved}" if entry.saved else ""
    times = f", {words.many(entry.attempts, 'attempt')}" if entry.attempts > 1 else ""
    then = f"; repaired by {repaired}" if repaired else ""
    return f"{one_line(entry.title)} ({entry.verdict}{times}): {error_line(entry.error, most)}{kept}{then}"


def advice(loop: LoopRun) -> list[str]:
    """What a person should do next."""
    ledger = loop.ledger
    if loop.is_driven:
        return [f"watch it: {next_of_loop(loop, is_driven=True)}"]
    is_checked = ledger.ended == "stuck" and ledger.entries[-1].check
    found = [f"look at the check first: {ledger.entries[-1].check}"] if is_checked else []
    if state.waiting_of(ledger):
        found.append(f"decide about what was set aside: raymond review {loop.id}")
    found += _failures(loop)
    if loop.left:
        found.append(f"see the changes that do not count yet: {evidence.diff_command(loop, loop.left)}")
    found += evidence.plan_commands(loop)
    found += evidence.blocked(loop)
    for one in [one for one in ledger.done if one.verdict == PENDING][:5]:
        found.append(f"say whether {code(one.title)} is done, on a terminal: {_judges(loop, one)}")
    if ledger.skipped:
        found.append(f"unblock or remove the items that were passed over: {_opens(loop)}")
    if any(map(waits_for_review, loop.run.agents.values())):
        found.append(f"decide about a change of what decides a check: raymond review {loop.id}")
    elif (asking := loop.asking) and asking.state == "MANUAL.py":
        found.append(f"say whether it is done: raymond inbox shows the question, {_answering(loop, asking)} answers it")
    elif not loop.run.is_over:
        found.append(f"go on: {_resume(loop)}{_answers(loop)}")
    elif remaining(loop):
        found.append(f"go on with the rest: {_rest(loop)}")
    elif loop.loop == RALPH:
        found += _after_ralph(loop)
    if any(one.commit for one in ledger.entries):
        found.append(f"read what was committed: {_commits(loop)}")
    found += _merge(loop)
    return found or ["nothing"]


def _failures(loop: LoopRun) -> list[str]:
    """Where a person sees why items failed."""
    repaired = loop.ledger.repaired()
    failed = [
        one for one in loop.ledger.failed if one.verdict not in (REVIEW, REJECTED, RED) and one.key not in repaired
    ]
    kept = [
        (one, [*filter(None, (_log(loop, one), evidence.changes_command(loop, one)))]) for one in failed[:_FAILURES]
    ]
    told = [f"see why {code(one.title)} failed: {', '.join(where)}" for one, where in kept if where]
    return told if len(told) == len(kept) else [*told, f"see what the agent did: raymond logs {loop.id}"]


def _merge(loop: LoopRun) -> Iterator[str]:
    """How a person takes over what was done on the branch of the loop."""
    settings = loop.settings
    if not loop.run.is_over or not loop.has_branch:
        return
    own = pasted.word(loop.branch.shown, "BRANCH")
    if settings.applies and not settings.branch and (settings.way == "here" or loop.branch.is_applied):
        return  # its files are in the checkout
    if settings.way == "here" and settings.began_on:
        yield f"take it over: git switch {pasted.word(settings.began_on, 'BRANCH')}, then git merge {own}"
    elif loop.branch.tree_of(TIP) == loop.branch.tree_of(BASE):
        return  # nothing was done
    elif publish.contains(loop.top, git.head(loop.top), loop.branch.tip):
        return
    elif settings.took or not settings.branch:
        yield f"take it over: raymond apply {loop.id}"
    else:
        yield f"read it: git diff HEAD...{own}; take it over: git merge {own}, or raymond apply {loop.id}"


def _rest(loop: LoopRun) -> str:
    """The command that goes on; a story without tasks would be refused, so it names another one."""
    typed = dict(loop.settings.typed)
    if loop.loop == STORIES and any(why.startswith(NO_TASKS) for _, why in loop.ledger.skipped):
        typed["--story"] = [remaining(loop)[0].partition(":")[0]]
    flags = _flags(typed)
    return f"raymond {loop.loop} {'next --start' if loop.settings.internal else 'start'}{flags}"


def _judges(loop: LoopRun, entry: Entry) -> str:
    """The command that asks a person about an item that was done."""
    where = {name: values for name, values in loop.settings.typed.items() if name in _WHO_AND_WHERE}
    if entry.key == entry.group:
        flags = _flags({"--story": [entry.key]} | where)
        return f"raymond {STORIES} start{flags}"
    if loop.loop == SESSION:
        return f"raymond {TASKS} start --task ID, for each of {', '.join(entry.tasks)}"
    task = entry.tasks[0] if entry.tasks else entry.key
    flags = _flags({"--task": [task]} | where)
    return f"raymond {TASKS} start{flags}"


def _opens(loop: LoopRun) -> str:
    """How a person gets at what the loop works through."""
    if loop.loop == SESSION:
        return "raymond continuous-session edit"
    return f"edit {loop.documents.shown(SPECS)}" + (f" or {loop.documents.shown(PRD)}" if loop.loop == STORIES else "")


def _after_ralph(loop: LoopRun) -> Iterator[str]:
    """What a person can do about what the plain loop did not do."""
    settings, ledger = loop.settings, loop.ledger
    if ledger.ended in ("exhausted", "limit"):
        flags = _flags(settings.typed)
        again = f"raymond ralph {pasted.word(settings.prompt, 'PROMPT.md')}{flags}"
        yield f"{_missing(loop)}go on with more iterations: {again}"


def _flags(typed: Mapping[str, Sequence[str]]) -> str:
    """Flags as they are typed, after a blank."""
    told = (
        pasted.flag(name, value, name[2:].upper()) if value else name
        for name, values in typed.items()
        for value in values or ("",)
    )
    return "".join(f" {one}" for one in told)


def _missing(loop: LoopRun) -> str:
    """What the plain loop was waiting for and did not get."""
    settings, ledger = loop.settings, loop.ledger
    if ledger.ended != "exhausted":
        return ""
    if ledger.entries and ledger.entries[-1].verdict == RED:
        return f"{code(settings.gate)} is still red; "
    return f"the agent never said {code(settings.until)}; " if settings.until else "the goal is not met; "


def next_of_loop(loop: LoopRun, *, is_driven: bool) -> str:
    """The first command of what a person should do next."""
    if is_driven:
        return f"raymond attach {loop.id}"
    is_aside = loop.run.is_over and bool(state.waiting_of(loop.ledger))
    if is_aside or any(map(waits_for_review, loop.run.agents.values())):
        return f"raymond review {loop.id}"
    if asking := loop.asking:
        return _answering(loop, asking)
    if not loop.run.is_over:
        return _resume(loop)
    if remaining(loop):
        return _rest(loop)
    return _commits(loop) if any(one.commit for one in loop.ledger.entries) else f"raymond logs {loop.id}"


def asked(loop: LoopRun) -> str:
    """The first line of what a person is asked; empty without a question."""
    found = loop.asking
    return found.question.partition("\n")[0] if found else ""


def _answering(loop: LoopRun, agent: Agent) -> str:
    """The command that answers a question so that the loop goes on."""
    said = "continue" if agent.question.startswith(FAILS) else _ANSWERS.get(agent.state, "TEXT")
    return f"raymond answer {loop.id} {said}"


def _resume(loop: LoopRun) -> str:
    if loop.settings.internal:
        verb = "record" if loop.leased else "next" if loop.rests else "next --resume"
        return f"raymond {loop.loop} {verb}{loop.docs_flag}"
    return f"raymond resume {loop.id}{limit_flag(loop.run)}"


def _answers(loop: LoopRun) -> str:
    """How a person answers whether a loop that has paused goes on."""
    if not any(one.status == ASKING and one.state == "PAUSE.py" for one in loop.run.agents.values()):
        return ""
    return f", or raymond answer {loop.id} continue; end it: raymond answer {loop.id} stop"


def _commits(loop: LoopRun) -> str:
    """The command that shows what the loop has committed."""
    return f'git log -p --grep="Raymond-Run: {loop.id}"{f" {_branch(loop)}" if loop.has_branch else ""}'


def _log(loop: LoopRun, entry: Entry) -> str:
    """The command that shows the session log of an item: it is on the branch of the loop, and perhaps nowhere else."""
    if not entry.log or not loop.has_branch:
        return entry.log
    path = loop.checkout.inside_path(os.path.relpath(entry.log, loop.checkout.docs))
    return f"git show {pasted.word(f'{loop.branch.shown}:{path}', 'REF:PATH')}"


def _branch(loop: LoopRun) -> str:
    """What names the last commit of a loop."""
    return pasted.word(loop.branch.shown, "BRANCH")


def _time(when: float) -> str:
    return f"{datetime.fromtimestamp(when, UTC).astimezone():%Y-%m-%d %H:%M}"
