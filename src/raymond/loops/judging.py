"""Judging: what a person is asked about an item that no command can check, and what they say."""

import json

from raymond.loops import documents, finishing
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.work import Work
from raymond.text import safe

_AGREES = ("yes", "y", "ok", "passed")
_CHANGED = 50
"""Paths that are named; git shows all of them."""
_LINES, _WIDTH = 60, 100
"""Of what an agent said."""
_COMMITS = 10
"""Commits of an item that are named."""


def question(work: Work, reply: str) -> str:
    """The whole text of an item, what was done, and how to answer; the agent's words are kept for afterwards."""
    repository = work.step.repository
    tree = repository.tree()
    documents.write(_kept(work), json.dumps([reply, tree]))
    changed = [one.path for one in repository.changes(work.baseline.work, tree)]
    changed = [one for one in changed if not work.step.documents.owns(one)]
    told = [
        f"Is this done? {work.title}",
        "What to judge it by:\n" + "\n".join(f"- {one}" for one in work.criteria),
        work.details.strip(),
        _quoted(reply),
        f"The check `{work.check}` is green." if work.check else "",
        _listed(changed, f"{work.baseline.work[:12]} {work.show(tree)}") if changed else _before(work),
        "Answer `yes`, or say what is missing.",
    ]
    return "\n\n".join(filter(None, told)).replace("</", "< /")


def _quoted(reply: str) -> str:
    """What the agent said, line by line as a quotation: none of it can be taken for a line of ours."""
    lines = [line[at : at + _WIDTH] for line in safe(reply).splitlines() for at in range(0, len(line) or 1, _WIDTH)]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        return ""
    left_out = len(lines) - _LINES
    head = f"The agent says (without its first {left_out} lines):" if left_out > 0 else "The agent says:"
    return "\n".join([head, *(f"> {line}".rstrip() for line in lines[-_LINES:])])


def _listed(changed: list[str], trees: str) -> str:
    """The files that differ, and the command that shows how; `trees` are what it compares."""
    lines = [f"- {one_line(path)}" for path in changed[:_CHANGED]]
    if len(changed) > _CHANGED:
        lines.append(f"... and {len(changed) - _CHANGED} more: git diff --stat {trees}")
    return "\n".join([f"Changed ({len(changed)}):", *lines, "", f"All of it: git diff {trees}"])


def _before(work: Work) -> str:
    """What was done for it by loops before this one."""
    lines = ["Nothing was changed for it now."]
    for commit, subject, log in _commits(work)[:_COMMITS]:
        lines.append(f"Done before: git show {commit[:12]} ({one_line(subject)})")
        lines += [f"Its session log: {one_line(log)}"] if log else []
    return "\n".join(lines)


def _commits(work: Work) -> list[tuple[str, str, str]]:
    """The commits of the item, newest first: each with its subject and its session log."""
    repository, found = work.step.repository, []
    for commit in repository.said("log", "--format=%H", "--fixed-strings", f"--grep=({work.key})").split():
        subject, *lines = repository.message(commit).splitlines()
        if subject.endswith(f"({work.key})") and any(line.startswith("Raymond-Item: ") for line in lines):
            log = next((line for line in lines if line.startswith("Log: ")), "")
            found.append((commit, subject, log.removeprefix("Log: ")))
    return found


def take(work: Work, answer: str) -> tuple[str, str]:
    """What is missing according to a person, empty when nothing is; and what the agent said before."""
    said = answer.strip()
    agrees = said.casefold().rstrip(".!") in _AGREES
    reply, tree = json.loads(documents.read(_kept(work)) or '["", ""]')
    documents.write(finishing.judgement(work), tree if agrees else "")
    return "" if agrees else said or "nothing was said", reply


def _kept(work: Work) -> str:
    return work.step.file(f"reply-{work.slot}")
