"""Evidence about an item that was set aside: what changed, what its agent said, and what its check printed."""

from typing import Any

from msgspec import Struct

from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.store import records
from raymond.workspace import publish

CHANGE = "difference"


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


def of(loop: LoopRun, entry: Entry) -> Evidence:
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
    for record in records.every(loop.project.run(loop.id).transcripts, entry.agent) if entry.agent else ():
        words = _text(record, "said").strip() or words
        if record[0].get("gate"):
            printed = _text(record, "out") or printed
    return words, printed


def _text(record: list[dict[str, Any]], name: str) -> str:
    return "".join(str(line[name]) for line in record if isinstance(line.get(name), str))
