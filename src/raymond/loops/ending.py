"""The end of a loop, whichever way it came: its work comes home, summary, state file; all of it can be repeated."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from time import time
from typing import Any

from raymond.control import runs
from raymond.errors import Error, UsageError
from raymond.faces.words import many
from raymond.loops import report, state
from raymond.loops.branch import BASE, TIP, trailers
from raymond.loops.documents import FAILURES, PROGRESS, SUMMARIES, stored
from raymond.loops.formats import records
from raymond.loops.formats.state_file import Status
from raymond.loops.ledger import Ledger
from raymond.loops.loop_run import LoopRun
from raymond.loops.outcome import RECORDS
from raymond.loops.settings import RALPH
from raymond.loops.step import TROUBLE, told
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.system import git, processes
from raymond.views.status import exit_code
from raymond.workspace import apply as applying
from raymond.workspace import publish
from raymond.workspace import tree as trees
from raymond.workspace.apply import Done
from raymond.workspace.repository import Repository

_CONCLUDING = 60.0
"""Seconds that a process may take to write down how a loop ended."""


# Into the checkout of the person


def bring_documents(loop: LoopRun) -> None:
    """Let the checkout that a loop works in have the tip, with what is not committed there on top of it.

    Nothing is done where a person has checked out another branch.
    """
    place = loop.place
    branch = loop.branch_in(Repository(place.slot.git, place.slot.rules))
    with place.alone():
        origin, taken = place.known(), place.harvest()
        wanted = branch.merged(taken.left, origin.commit) if branch.is_looked_at or not branch.name else ""
        if wanted:
            trees.follow(place.slot, origin, branch.tip, branch.vouched, wanted=wanted, taken=taken.left)
            branch.check_out(origin.commit)
    if loop.run.is_over:
        place.drop()


def bring_files(loop: LoopRun) -> Done:
    """Write what the loop changed into the checkout: all of it, or nothing where a file is in the way."""
    branch, documents = loop.branch, loop.checkout
    if not loop.has_branch:
        hint = "it makes no commits, so its work is in the checkout"
        if loop.settings.commits_anything:
            hint = f"git update-ref {branch.reference(TIP)} {' '.join(branch.known(TIP)[:1])} puts it back"
        raise UsageError(f"{loop.id} has no branch", hint=hint)
    united = {documents.inside_path(name): records.united for name in (PROGRESS, FAILURES)}
    return applying.apply(loop.top, loop.id, branch.commit_of(BASE), branch.commit_of(TIP), united)


def bring_branch(loop: LoopRun) -> str:
    """The same at the end of a loop, as one step forward of the branch if that can be; what was done, in words."""
    branch = loop.branch
    head, tip = git.head(loop.top), branch.tip
    if loop.settings.branch == "" or loop.settings.took or not publish.contains(loop.top, tip, head):
        done = bring_files(loop)
        if done.conflicts:
            raise Error(f"{done.conflicts[0]} has changed since", hint=f"raymond apply {loop.id} says more")
        return f"{many(len(done.changed), 'file')} brought into the checkout; nothing is committed"
    publish.ask(loop.top, "merge", "--ff-only", "-q", tip)
    return f"the branch here is at {tip[:12]} now"


def tell(project: Project, run: Run, *, signal: int = 0, as_json: bool = False) -> int:
    """Conclude the loop, and print its summary; its exit code."""
    loop = LoopRun(project, run)
    conclude(loop)
    return show(loop, signal=signal, as_json=as_json)


def show(loop: LoopRun, *, signal: int = 0, as_json: bool = False) -> int:
    """Print the summary of a loop; its exit code."""
    code = code_of(loop, signal)
    sys.stdout.write(json.dumps(document(loop, code)) + "\n" if as_json else report.text(loop))
    sys.stdout.flush()
    return code


def settle(loop: LoopRun) -> None:
    """Let lists and views of runs tell what a person has decided about what the loop has set aside, and what waits."""
    with loop.branch.alone():  # a decision made meanwhile waits for the lock, then gets here itself
        now, folder = LoopRun(loop.project, runs.look(loop.project, loop.id).run), loop.project.run(loop.id)
        found = [one for one in state.waiting_of(now.ledger) if git.reference(loop.top, one.saved)]
        state.note_waiting(folder, now.ledger, found)
        if now.run.is_over and now.ledger.ended:
            state.revise_waiting(folder, now.ledger)


def conclude(loop: LoopRun) -> None:
    """Write down how it ended."""
    if state.decided(loop.project.run(loop.id)):
        settle(loop)
    if loop.ledger.ended == "refused":
        _withdraw(loop)
        return
    if loop.leased or loop.rests:
        return  # another program goes on with it
    if loop.has_branch:
        with _told("the summary was not written to the branch"):
            _write_summary(loop)
        with _told("the branch was not brought into the checkout"):
            _come_home(loop)
    if loop.loop != RALPH or os.path.isdir(loop.checkout.folder):
        # The state file comes last: a loop that it calls running is concluded again.
        path = loop.checkout.state(loop.loop)
        snapshot = tuple(report.all_remaining(loop))
        status = status_of(loop)
        error = report.failure(loop.run) if status == "failed" else ""
        with _told("the state file was not written"):
            state.write(path, loop.id, loop.settings, loop.ledger, status, snapshot, pid=os.getpid(), error=error)


def is_concluded(loop: LoopRun) -> bool:
    """Whether it is written down how a loop ended; done here if the process that drove it was killed before."""
    if loop.ledger.ended == "refused":
        conclude(loop)  # its process does the same, and no state file says when it has
        return True
    given = state.contents_of(loop.checkout.state(loop.loop))
    if given.get("workflow_id") != loop.id or given.get("status") not in ("running", "stopping"):
        return True
    pid = given.get("pid")
    is_soon = time() - loop.run.now < _CONCLUDING
    if is_soon and isinstance(pid, int) and processes.alive(pid, processes.start_time(pid)):
        return False
    conclude(loop)
    return True


def _withdraw(loop: LoopRun) -> None:
    """A refused start changes nothing: what it had made for the loop goes."""
    with _told("what the loop had begun was not removed"):
        if loop.has_branch:
            loop.branch.withdraw()
    path = loop.checkout.state(loop.loop)
    if state.is_of(path, loop.id):
        os.unlink(path)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what git did not do: whatever that is, there is a summary."""
    try:
        yield
    except TROUBLE as error:
        print(f"{what}: {told(error)}", file=sys.stderr)


def _write_summary(loop: LoopRun) -> None:
    """One file for each ending: the same ending writes the same file."""
    when = datetime.fromtimestamp(loop.run.now, UTC)
    name = f"{loop.loop}-{when:%Y%m%dT%H%M%SZ}.md"
    branch, text = loop.branch, report.text(loop)
    with branch.alone():
        tip = branch.tip
        documents = stored(loop.checkout, branch.repository, tip)
        has_folder = loop.loop != RALPH or bool(documents.names())  # the plain loop works without documents
        if has_folder and not documents.exists(SUMMARIES, name):
            documents.write(text, SUMMARIES, name)
            message = f"{RECORDS}\n\n{loop.loop}: {report.how(loop)}\n\n{trailers(loop.id, '')[0]}\n"
            branch.commit(documents.onto(branch.repository.tree_of(tip)), message, tip)
        branch.follow()


def _come_home(loop: LoopRun) -> None:
    """Let the checkout of a loop that works there have what is on the branch; bring it there if it was asked for."""
    if loop.branch.is_here and loop.place.is_there:
        bring_documents(loop)
    elif loop.settings.applies and loop.run.is_over:
        print(bring_branch(loop), file=sys.stderr)


def status_of(loop: LoopRun) -> Status:
    """The status as state files have it."""
    run, ledger = loop.run, loop.ledger
    if run.final_status == "failed" and not ledger.ended:
        return "failed"
    if not run.is_over:
        return "paused"
    return "paused" if ledger.ended == "limit" and ledger.left else "complete"


def code_of(loop: LoopRun, signal: int = 0) -> int:
    """The exit code of a loop."""
    run, ledger = loop.run, loop.ledger
    if run.is_over and ledger.ended:
        return ledger.exit_code
    return exit_code(run, signal)


def document(loop: LoopRun, code: int) -> dict[str, Any]:
    """The summary for programs."""
    ledger = loop.ledger
    return {
        "workflow_id": loop.id,
        "loop": loop.loop,
        "mode": "internal" if loop.settings.internal else "external",
        "status": status_of(loop),
        "is_running": False,
        "ended": report.how(loop),
        "exit_code": code,
        "sessions": ledger.sessions,
        "most": loop.settings.most or None,
        "cost": None if loop.settings.internal else round(loop.run.cost, 6),
        "seconds": round(loop.run.now - loop.run.started_at, 3),
        "branch": loop.settings.branch or None,
        "workspace": loop.settings.way,
        "current": _current(ledger),
        "completed": _entries(ledger, is_done=True),
        "failed": _entries(ledger, is_done=False),
        "passed_over": [{"title": title, "reason": why} for title, why in ledger.skipped],
        "remaining": report.remaining(loop),
        "next": report.advice(loop),
    }


def _entries(ledger: Ledger, *, is_done: bool) -> list[dict[str, Any]]:
    found = ledger.done if is_done else ledger.failed
    return [json.loads(one.write()) for one in found]


def _current(ledger: Ledger) -> dict[str, Any]:
    opened = ledger.open
    if opened is None:
        return {}
    found = {"iteration": str(opened.number), "title": opened.title, "check": opened.check, "log": opened.log}
    return {name: value for name, value in found.items() if value}
