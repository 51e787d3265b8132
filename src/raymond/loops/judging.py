"""Judging: what a person is asked about an item that no command can check, and what they say."""

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from raymond import pasted
from raymond.loops import documents, finishing
from raymond.loops.documents import STATES
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.repository import Repository
from raymond.loops.waiting import ACCEPTED, decided
from raymond.loops.work import Work
from raymond.patterns import regex
from raymond.system import git
from raymond.text import safe

_AGREES = ("looks good to me", "looks good", "yes", "y", "okay", "ok", "done", "lgtm", "passed")
"""What agrees, in words; a phrase that begins with another one comes first."""
_REFUSES = ("no", "n", "nope")
"""Single words that are an answer."""
_WORDS = regex(r"\w+(?:['’]\w+)*")
_PLAIN = regex(r"[\"'`*]*\w[\w\s.,!\"'’`*-]*")
"""An agreement without a question mark, or a sign that takes it back."""
_NAMED = 10
"""Files that are named in one line."""
_CHANGED = 50
"""Paths that are named; git shows all of them."""
_LINES, _WIDTH = 60, 100
"""Of what an agent said."""
_COMMITS = 10
"""Commits of an item that are named."""
_RUNS = 200
"""Loops of a kind that are asked for them, the latest first."""


class Answer(Enum):
    """What an answer comes to."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


def meant(said: str, before: str = "") -> Answer:
    """What an answer comes to; `before` is one that was asked back: a single word that is said again is meant."""
    words = _WORDS.findall(said.casefold())
    rest = _after_agreement(words)
    if words and not rest:
        return Answer.YES if _PLAIN.fullmatch(said.strip()) else Answer.UNCLEAR
    if len(rest) < len(words) or not words:
        return Answer.UNCLEAR
    if len(words) > 1 or words[0] in _REFUSES or said.strip() == before:
        return Answer.NO
    return Answer.UNCLEAR


def _after_agreement(words: list[str]) -> list[str]:
    """What follows the words that agree."""
    for phrase in map(str.split, _AGREES):
        if words[: len(phrase)] == phrase:
            return _after_agreement(words[len(phrase) :])
    return words


def question(work: Work, reply: str) -> str:
    """The whole text of an item, what was done, and how to answer; the agent's words are kept for afterwards."""
    repository = work.step.repository
    tree = repository.tree()
    documents.write(_kept(work), json.dumps([reply, tree]))
    changed = [one.path for one in repository.changes(work.baseline.work, tree)]
    changed = [one for one in changed if not work.step.documents.owns(one)]
    told = [
        _again(work, tree),
        f"Is this done? {work.title}",
        "What to judge it by:\n" + "\n".join(f"- {one}" for one in work.criteria),
        work.details.strip(),
        _quoted(reply),
        f"The check `{work.check}` is green." if work.check else "",
        _listed(changed, f"{work.baseline.work[:12]} {work.show(tree)}") if changed else _done(work),
        f"Answer `yes`, or say what is missing. {_follows(work)}",
    ]
    return "\n\n".join(filter(None, told)).replace("</", "< /")


def _again(work: Work, tree: str) -> str:
    """Why a person is asked again who has answered; empty for the first question."""
    before = _before_this(work)
    if before.get("unclear") is not None:
        said = one_line(before["unclear"]) or "nothing"
        return f"You said: {said}\nDoes that mean yes? Answer yes, or say what is missing."
    if not before.get("agreed"):
        return ""
    changed = [one.path for one in work.step.repository.changes(before["agreed"], tree)]
    changed = [one_line(one) for one in changed if not work.step.documents.owns(one)]
    if not changed:
        return "You said yes, but it was worked on again since."
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"You said yes, but these files have changed since: {', '.join(changed[:_NAMED])}{more}"


def _follows(work: Work) -> str:
    """What each answer does, in a line."""
    does = "commits it as done" if work.settings.commits else "marks it as done"
    return f"`yes` {does}; any other text is a no: the next attempt is told, or without another one the item fails."


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


def before(repository: Repository, key: str, known: Sequence[tuple[str, str, str]]) -> str:
    """What was done for an item by loops before this one: the commits that are `known`.

    Each with its session log, and the commit that its agent began with.
    """
    lines = ["Nothing was changed for it now."]
    for commit, log, base in known[:_COMMITS]:
        subject = repository.message(commit).partition("\n")[0]
        lines.append(f"Done before: git show {commit[:12]} ({one_line(subject)})")
        if base and repository.reference(f"{commit}^") != base:
            lines.append(f"With what the agent has committed itself: git diff {base[:12]} {commit[:12]}")
        lines += [f"Its session log: {one_line(log)}"] if log else []
    if len(known) > _COMMITS:
        lines.append(f"... and {len(known) - _COMMITS} commits for it that are older")
    if not known:
        shown = pasted.word(f"--grep=({key})", "--grep=ID")
        lines.append(f"No loop of this project knows a commit for it; whoever else names it: git log -F {shown}")
    return "\n".join(lines)


def _done(work: Work) -> str:
    return before(work.step.repository, work.key, _known(work))


def _known(work: Work) -> list[tuple[str, str, str]]:
    """The commits for the item that journals of this project know, newest first.

    A message proves nothing: an agent may have written it.
    """
    from raymond.loops import starting  # most items have changed something
    from raymond.store import project as projects

    found, step, names = [], work.step, {work.key, *work.tasks}
    places = dict.fromkeys([step.top, *git.worktrees(step.cwd)])
    for loop in (one for place in places for kind in STATES for one in starting.every(projects.at(place), kind, _RUNS)):
        accepted = decided(loop.project.run(loop.id))
        for entry in loop.ledger.entries:
            commit = entry.commit or accepted.get(entry.key, "").partition(ACCEPTED)[2]
            if commit and names.intersection((entry.key, *entry.tasks)):
                found.append((entry.began, commit, entry.log, entry.base if entry.commit else ""))
    newest = dict.fromkeys(one[1:] for one in sorted(found, reverse=True))
    return [one for one in newest if _has(work, one[0])]


def _has(work: Work, commit: str) -> bool:
    return work.step.repository.run("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def take(work: Work, answer: str) -> tuple[str, str]:
    """What is missing according to a person, empty when nothing is; and what the agent said before.

    An answer that may mean either is neither: the item is not judged then, and the next question asks back.
    """
    said = answer.strip()
    reply, tree = json.loads(documents.read(_kept(work)) or '["", ""]')
    means = meant(said, _before_this(work).get("unclear") or "")
    known = {"unclear": said} if means == Answer.UNCLEAR else {"agreed": tree} if means == Answer.YES else {}
    documents.write(_answered(work), json.dumps(known))
    documents.write(finishing.judgement(work), tree if means == Answer.YES else "")
    return said if means == Answer.NO else "", reply


def _before_this(work: Work) -> dict[str, Any]:
    """What is known of the answer before: what was unclear, or the tree that was agreed to."""
    known: dict[str, Any] = json.loads(documents.read(_answered(work)) or "{}")
    return known


def _answered(work: Work) -> str:
    return work.step.file(f"answered-{work.slot}")


def _kept(work: Work) -> str:
    return work.step.file(f"reply-{work.slot}")
