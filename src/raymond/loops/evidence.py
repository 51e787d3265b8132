"""What items leave behind that did not count: changes, words, output of checks, blocked tasks."""

import contextlib
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from raymond import pasted
from raymond.errors import Error
from raymond.loops import spec_files
from raymond.loops.formats import item_ids
from raymond.loops.formats.foreign_text import code
from raymond.loops.formats.task_spec import SHOWN
from raymond.loops.item_run import DOCUMENTS
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.outcome import WAITS
from raymond.loops.settings import SESSION
from raymond.loops.spec_files import Placed
from raymond.store import transcripts
from raymond.system import git
from raymond.workspace import publish

CHANGE = "difference"

_MOST = 5


class Evidence(Struct, frozen=True):
    """What a person judges an item by; its JSON is that of `review --json`."""

    item: int
    title: str
    agent: str
    verdict: str
    reason: str
    check: str
    saved: str
    words: str
    """The last message of the agent."""
    texts: dict[str, str]
    """What each text is -> the text."""


def evidence_of(loop: LoopRun, entry: Entry) -> Evidence:
    """Everything that is known about an item."""
    words, printed = _said(loop, entry)
    texts = {CHANGE: difference(loop, entry), "what the check printed": printed}
    return Evidence(
        item=entry.number,
        title=_stored(entry.title),
        agent=entry.agent,
        verdict=entry.verdict,
        reason=_stored(" ".join(entry.error.split())),
        check=_stored(entry.check),
        saved=entry.saved,
        words=words,
        texts={what: text for what, text in texts.items() if text},
    )


def _stored(text: str) -> str:
    """`text` without bytes of a document that are not UTF-8, which no JSON can have."""
    return text.encode("utf-8", "replace").decode()


def difference(loop: LoopRun, entry: Entry) -> str:
    """Everything that its agent changed, as a diff, without the documents of the loop."""
    but = [f":(exclude,literal){path}" for path in loop.checkout.kept]
    options = ("--text", "--no-color", "--no-ext-diff", "--no-textconv")
    said = publish.ask(loop.top, "diff", *options, entry.base, entry.kept, "--", ".", *but)
    return said.decode("utf-8", "replace")


def _said(loop: LoopRun, entry: Entry) -> tuple[str, str]:
    """The last message of its agent, and what its check printed last, with the changed files and the sealed ones."""
    words = printed = ""
    for record in transcripts.every_record(loop.project.run(loop.id).transcripts, entry.agent) if entry.agent else ():
        words = _text(record, "said").strip() or words
        if record[0].get("gate"):
            printed = _text(record, "out") or printed
    return words, printed


def _text(record: list[dict[str, Any]], name: str) -> str:
    return "".join(str(line[name]) for line in record if isinstance(line.get(name), str))


def changes_command(loop: LoopRun, entry: Entry) -> str:
    """The command that shows what an item that failed has left; empty if nothing is known of it."""
    return diff_command(loop, entry.saved) if entry.saved else ""


def diff_command(loop: LoopRun, name: str) -> str:
    """The command that shows what a reference has."""
    return f"git diff {pasted.word(loop.branch.shown, 'BRANCH')}...{pasted.word(name, 'REF')}"


def plan_commands(loop: LoopRun) -> Iterator[str]:
    """How a person sees what agents whose work counts have changed in the plan, which does not count."""
    names = [f"{one.slot}.{DOCUMENTS}" for one in loop.ledger.done if loop.has_branch]
    for name in [one for one in names if loop.branch.commit_of(one)][:_MOST]:
        where = f"git show {loop.branch.reference(name)} -- {pasted.word(loop.checkout.docs, 'DIR')}"
        yield f"see what an agent changed in the plan, which does not count: {where}"


def blocked(loop: LoopRun) -> Iterator[str]:
    """How a person unblocks what the loop has blocked because it failed too often."""
    found = [one for one in loop.ledger.failed if one.action == "block"]
    if loop.loop == SESSION:
        for one in found[:_MOST]:
            yield f"unblock {code(one.title)}: take its [BLOCKED: ...] out with raymond continuous-session edit"
        return
    failed = {item_ids.repaired(one.key) for one in found}
    waiting = [one for one in _blocked(loop) if item_ids.repaired(one.task.id) in failed] if failed else []
    is_apart = loop.has_branch and not publish.contains(loop.top, git.head(loop.top), loop.branch.tip)
    after = " when you have taken the branch over" if is_apart else ""
    for placed in [one for one in waiting if not one.task.reason.startswith(WAITS)][:_MOST]:
        where = f"write {SHOWN['planned']} as its Status in {loop.documents.shown(placed.place)}{after}"
        yield f"unblock {code(f'{placed.task.id}. {placed.task.title}')} when it can be done: {where}"


def _blocked(loop: LoopRun) -> list[Placed]:
    """The tasks that are blocked; none if their specs cannot be read any more."""
    with contextlib.suppress(Error, OSError):
        return [one for one in spec_files.read_tasks(loop.documents).tasks.values() if one.task.status == "blocked"]
    return []
