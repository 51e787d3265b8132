"""Judging: what a person is asked about an item that no command can check, and what they say."""

import json

from raymond.loops import documents
from raymond.loops.finishing import YES
from raymond.loops.work import Work

_AGREES = (YES, "y", "ok", "passed")
_CHANGED = 50
"""Paths that are named; git shows all of them."""


def question(work: Work, reply: str) -> str:
    """The whole text of an item, what was done, and how to answer; the agent's words are kept for afterwards."""
    documents.write(_kept(work), json.dumps(reply))
    repository = work.step.repository
    tree = repository.tree()
    changed = [one.path for one in repository.changes(work.baseline.work, tree)]
    changed = [one for one in changed if not work.step.documents.owns(one)]
    more = f"\n... and {len(changed) - _CHANGED} more" if len(changed) > _CHANGED else ""
    told = [
        f"Is this done? {work.title}",
        "What to judge it by:\n" + "\n".join(f"- {one}" for one in work.criteria),
        work.details.strip(),
        f"The check `{work.check}` is green." if work.check else "",
        "Changed:\n" + "\n".join(changed[:_CHANGED]) + more if changed else "Nothing was changed for it now.",
        f"All of it: git diff {work.baseline.work[:12]} {work.show(tree)}" if changed else _before(work),
        f"The agent says:\n{reply.strip()}" if reply.strip() else "",
        "Answer `yes`, or say what is missing.",
    ]
    return "\n\n".join(filter(None, told)).replace("</", "< /")


def _before(work: Work) -> str:
    return f"What was done for it before: git log -p --fixed-strings --grep='({work.key})'"


def take(work: Work, answer: str) -> tuple[str, str]:
    """What is missing according to a person, empty when nothing is; and what the agent said before."""
    said = answer.strip()
    agrees = said.casefold().rstrip(".!") in _AGREES
    documents.write(work.step.file(f"judged-{work.slot}"), YES if agrees else "")
    return "" if agrees else said or "nothing was said", json.loads(documents.read(_kept(work)) or '""')


def _kept(work: Work) -> str:
    return work.step.file(f"reply-{work.slot}")
