"""The end of a loop, whichever way it came: state file, summary, closing commit; all of it can be repeated."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from raymond.loops import documents, state, summary, unfinished
from raymond.loops.committing import BEHIND
from raymond.loops.documents import SUMMARIES, WRITTEN
from raymond.loops.formats.state_file import Status
from raymond.loops.git_calls import GitError
from raymond.loops.ledger import Ledger
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH
from raymond.loops.step import told
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.views.status import exit_code

PAUSED = "paused"
"""The file in the folder of a loop that says how everything stood when it paused."""
_CURRENT = ("iteration", "title", "check", "log")
RECORDS = "chore(loop): records"


def tell(project: Project, run: Run, *, signal: int = 0, as_json: bool = False) -> int:
    """Conclude the loop, and print its summary; its exit code."""
    loop = LoopRun(project, run)
    code = code_of(loop, signal)
    conclude(loop)
    sys.stdout.write(json.dumps(document(loop, code)) + "\n" if as_json else summary.text(loop))
    sys.stdout.flush()
    return code


def conclude(loop: LoopRun) -> None:
    """Write down how it ended."""
    if loop.loop != RALPH or os.path.isdir(loop.documents.folder):
        with _told("it was not noted how everything stands"):
            _note_pause(loop)
        with _told("what failed items left stays in the tree"):
            loop.kept = _put_away(loop)
        with _told("the summary was not written to a file"):
            _write_summary(loop)
        with _told("the records of the loop were not committed"):
            _commit_records(loop)
        # The state file comes last: whoever finds it saying that the loop runs does all of this again.
        path = loop.documents.state(loop.loop)
        snapshot = tuple(summary.whole(loop))
        with _told("the state file was not written"):
            state.write(path, loop.id, loop.settings, loop.ledger, status_of(loop), snapshot, pid=os.getpid())


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what git did not do: whatever that is, there is a summary."""
    try:
        yield
    except (GitError, OSError) as error:
        print(f"{what}: {told(error)}", file=sys.stderr)


def status_of(loop: LoopRun) -> Status:
    """The status as state files have it."""
    run, ledger = loop.run, loop.ledger
    if not run.is_over:
        return "paused"
    if run.final_status == "failed" and not ledger.ended:
        return "failed"
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
        "mode": "external",
        "status": status_of(loop),
        "is_running": False,
        "ended": summary.how(loop),
        "exit_code": code,
        "sessions": ledger.sessions,
        "most": loop.settings.most or None,
        "cost": round(loop.run.cost, 6),
        "seconds": round(loop.run.now - loop.run.started_at, 3),
        "branch": loop.settings.branch or None,
        "worktree": loop.top if loop.worktree else None,
        "current": {key: ledger.open[key] for key in _CURRENT if key in ledger.open},
        "completed": _entries(ledger, is_done=True),
        "failed": _entries(ledger, is_done=False),
        "passed_over": [{"title": title, "reason": why} for title, why in ledger.passed],
        "remaining": summary.remaining(loop),
        "next": summary.advice(loop),
    }


def _entries(ledger: Ledger, *, is_done: bool) -> list[dict[str, Any]]:
    found = ledger.done if is_done else ledger.failed
    return [json.loads(one.write()) for one in found]


def _write_summary(loop: LoopRun) -> None:
    """One file for each ending: the same ending writes the same file."""
    when = datetime.fromtimestamp(loop.run.now, UTC)
    name = f"{loop.loop}-{when:%Y%m%dT%H%M%SZ}.md"
    text = summary.text(loop)
    documents.note(loop.file(WRITTEN), os.path.join(loop.documents.inside, SUMMARIES, name), text)
    documents.write(loop.documents.path(SUMMARIES, name), text)


def _note_pause(loop: LoopRun) -> None:
    """Note how everything stands when nobody works any more: what changes from now on is a person's."""
    if not loop.run.is_over and loop.ledger.open and loop.settings.branch:
        repository = loop.repository
        documents.write(loop.file(PAUSED), f"{repository.head()} {repository.tree()}")


def _put_away(loop: LoopRun) -> str:
    """Save what items that failed have left in the tree, and return to HEAD, so that the next night can start.

    Not where a person was asked meanwhile, who may have changed files too. Where it is kept, if anywhere.
    """
    ledger, settings = loop.ledger, loop.settings
    is_ours = (
        loop.run.is_over and loop.loop != RALPH and settings.commits and not settings.is_dirty and not ledger.asked
    )
    has_left = any(one.action in ("retry", "create-fix-task") for one in ledger.entries)
    repository = loop.repository
    if not is_ours or not has_left or ledger.ended in ("", "stopped") or repository.branch() != settings.branch:
        return ""
    head = repository.head()
    left = [path for path in repository.dirt() if not loop.documents.owns(path)]
    name = f"refs/raymond/{loop.id}/left"
    if not left:
        return name if repository.reference(name) else ""
    date = f"{int(loop.run.now)} +0000"
    made = repository.commit(repository.tree(), [head], "raymond: what failed items left\n", date)
    repository.move(name, made)
    repository.bring_back(head, left)
    return name


def _commit_records(loop: LoopRun) -> None:
    """Commit what is left of the loop's own documents, so that the next night can start; never inside of an item."""
    if not loop.settings.commits or loop.ledger.open or (loop.loop == RALPH and loop.settings.commit == "never"):
        return
    repository = loop.repository
    branch, head = repository.branch(), repository.head()
    if not head or (loop.settings.branch and branch != loop.settings.branch):
        return
    own = [path for path in repository.dirt() if loop.documents.owns(path)]
    if not own:
        return
    if under_way := unfinished.words(unfinished.there(repository)):
        raise GitError(f"{under_way} is in progress here", hint=f"end it, then commit what is in {loop.documents.docs}")
    message = f"{RECORDS}\n\n{loop.loop}: {summary.how(loop)}\n\nRaymond-Run: {loop.id}\n"
    date = f"{int(loop.run.now)} +0000"
    tree = repository.tree(own)
    if tree != repository.reference(f"{head}^{{tree}}"):  # after a kill, only the index may be behind
        made = repository.commit(tree, [head], message, date, sign=repository.signs)
        repository.move(f"refs/heads/{branch}" if branch else "HEAD", made, head, "raymond: records")
    if not repository.follow(paths=own):
        print(BEHIND, file=sys.stderr)
