"""Judging: what a person is asked about an item that no command can check, and what they say."""

import os
from enum import Enum

import msgspec
from msgspec import Struct

from raymond.loops import documents
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.item_run import ItemRun, Work
from raymond.patterns import regex
from raymond.system import git
from raymond.text import safe
from raymond.workspace import publish

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
_ANSWER = (
    "Answer `yes`, or say what is missing. `yes` commits it as done; any other text is a no: the next attempt is told,"
    " or without another one the item fails."
)
_COMMITS = 10
"""Commits of an item that are named."""


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


class Judgement(Struct, omit_defaults=True):
    """What a person was shown, and what they said about it."""

    reply: str = ""
    tree: str = ""
    """What was shown."""
    agreed: str = ""
    """What they said yes to."""
    unclear: str | None = None
    """An answer that may mean either."""


def question(run: ItemRun, reply: str) -> str:
    """The whole text of an item, what was done, and how to answer; the agent's words are kept for afterwards."""
    tree, before = run.take(run.step.gate), _known(run)
    _keep(run, msgspec.structs.replace(before, reply=reply, tree=tree))
    changed = _changed(run, run.origin.tree, tree)
    if changed:
        made = run.branch.keep(f"{run.item.slot}.judged", tree, "raymond: judged\n", run.origin.commit)
        did = _listed(changed, f"{run.origin.commit[:12]} {made[:12]}")
    else:
        did = _before(run)
    told = [
        _again(run, before, tree),
        f"Is this done? {run.item.title}",
        "What to judge it by:\n" + "\n".join(f"- {one}" for one in run.item.criteria),
        run.item.details.strip(),
        _quoted(reply),
        f"The check `{run.item.check}` is green." if run.item.check else "",
        did,
        _ANSWER,
    ]
    return "\n\n".join(filter(None, told)).replace("</", "< /")


def _changed(run: ItemRun, old: str, new: str) -> list[str]:
    return sorted(map(os.fsdecode, run.repository.changes(old, new)))


def _again(run: ItemRun, before: Judgement, tree: str) -> str:
    """Why a person is asked again who has answered; empty for the first question."""
    if before.unclear is not None:
        said = one_line(before.unclear) or "nothing"
        return f"You said: {said}\nDoes that mean yes? Answer yes, or say what is missing."
    if not before.agreed:
        return ""
    changed = [one_line(one) for one in _changed(run, before.agreed, tree)]
    if not changed:
        return "You said yes, but it was worked on again since."
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"You said yes, but these files have changed since: {', '.join(changed[:_NAMED])}{more}"


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


def _before(run: ItemRun) -> str:
    """The commits that name an item for which nothing was changed now: what an agent said is in a body at most."""
    name = f"({run.item.key})"
    asked = ("log", "-F", "--format=%h %s", f"--grep={name}", run.branch.tip, "--")
    found = git.lines(publish.ask(run.branch.top, *asked).decode("utf-8", "replace"))
    lines = [f"- {one_line(one)}" for one in found if one.endswith(name)][:_COMMITS]
    return "\n".join(["Nothing was changed for it now.", *(["Commits that name it:", *lines] if lines else [])])


def take(run: ItemRun, answer: str) -> tuple[str, str]:
    """What is missing according to a person, empty when nothing is; and what the agent said before.

    An answer that may mean either is neither: the item is not judged then, and the next question asks back.
    """
    said, known = answer.strip(), _known(run)
    means = meant(said, known.unclear or "")
    agreed = known.tree if means == Answer.YES else ""
    unclear = said if means == Answer.UNCLEAR else None
    _keep(run, msgspec.structs.replace(known, agreed=agreed, unclear=unclear))
    return said if means == Answer.NO else "", known.reply


def is_judged(run: ItemRun, work: Work) -> bool:
    """Whether a person has said `yes` to exactly these files."""
    agreed = _known(run).agreed
    return bool(agreed) and agreed == work.tree


def _known(run: ItemRun) -> Judgement:
    text = documents.read(_path(run))
    return msgspec.json.decode(text, type=Judgement) if text else Judgement()


def _keep(run: ItemRun, judgement: Judgement) -> None:
    documents.write(_path(run), msgspec.json.encode(judgement).decode())


def _path(run: ItemRun) -> str:
    """The answer of a person becomes the input of the next state, so what was asked is kept beside the journal."""
    return run.step.file(f"judged-{run.item.slot}")
