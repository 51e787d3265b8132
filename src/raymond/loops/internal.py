"""Internal mode: another program has the items of a loop done by agents of its own. An item is a question to it.

The question is the prompt for an agent, and the answer is what that agent said last: everything before and after is the
same as for agents that Raymond starts itself. What else those agents could tell git is compared, not prevented.
"""

import contextlib
import json
import os
import re
from typing import TYPE_CHECKING

from raymond.digests import sha256
from raymond.language import template
from raymond.loops.branch import Branch
from raymond.loops.documents import LOGS
from raymond.loops.settings import Settings
from raymond.system import files, git
from raymond.workspace import publish

if TYPE_CHECKING:
    from raymond.loops.step import Step

_SEEN = "handed"
"""The file of the loop with what git was told when an item was handed out."""
_WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session", "WORK.md")
_OPENING = """\
You are continuing an autonomous {name} loop.

1. Read {state} for current state
2. Read the most recent session log in {logs}/
3. Execute the next item in the queue

Current state file: {state}

Continue the {name} loop. This is {count}. Work in `{folder}`, a private checkout of this project: change into it \
first, and do not write anywhere else. Do not start another agent, and do not run `raymond`."""


# In a step


def opening(step: "Step", settings: Settings, count: str) -> str:
    """The first lines of the prompt."""
    place, checkout = step.place, step.checkout
    return _OPENING.format(
        name=settings.loop.replace("-", " ").removesuffix(" loop"),
        state=checkout.state(settings.loop),
        logs=place.outside(checkout.path(LOGS)),
        count=count,
        folder=place.outside(step.cwd),
    )


def prompt(step: "Step") -> str:
    """What the agent is told that does the item: the same as one that Raymond starts, but for the first lines."""
    text = files.contents(_WORK).decode().partition("\n---\n")[2]
    named = {name: step.variable(name) for name, _ in template.names(text)}
    told = re.sub(r"\n{3,}", "\n\n", template.render(text, named | {"input": step.input})).strip()
    return re.sub("</(?=ask)", "< /", told, flags=re.IGNORECASE)  # it is the body of that tag


def note(step: "Step") -> None:
    """Take what git is told now for right."""
    files.replace(step.file(_SEEN), json.dumps(_told(step.top, step.branch)).encode(), durable=True)


def changed(step: "Step") -> list[str]:
    """What git is told differently since the loop began, or since a person saw it last."""
    try:
        before: dict[str, str] = json.loads(files.contents(step.file(_SEEN)))
    except FileNotFoundError:
        note(step)
        return []
    after, name = _told(step.top, step.branch), f"refs/heads/{step.branch.name}"
    if after.get(name) == step.branch.tip:
        before[name] = after[name]  # Raymond lets it follow
    differing = sorted(one for one in {*before, *after} if before.get(one) != after.get(one))
    verbs = ("added" if one not in before else "changed" if one in after else "removed" for one in differing)
    return [f"{one} was {verb}" for one, verb in zip(differing, verbs, strict=True)]


def question(found: list[str]) -> str:
    """What a person is asked about that."""
    told = f"git is not told the same as before: {', '.join(found)}".replace("</", "< /")
    return f"{told}\nNothing was checked or begun since. `continue` takes it for right; `stop` ends the loop."


def _told(top: str, branch: Branch) -> dict[str, str]:
    """The loop's branch, git's settings and the hooks, each by its name; of most of it, a digest."""
    name = f"refs/heads/{branch.name}"
    told = {name: commit} if branch.name and (commit := git.reference(top, name)) else {}
    for key, value in git.settings(top):
        if not key.startswith("branch."):  # git itself writes these, when a person switches or pushes
            setting = f"git's setting {key}"  # it may have several values
            told[setting] = sha256(f"{told.get(setting, '')}{value}".encode()).hexdigest()
    named = publish.settings(top).get("core.hookspath", "")
    own = os.path.join(git.directories(top)[1], "hooks")
    for folder in {own, os.path.join(top, os.path.expanduser(named)) if named else own}:
        for above, _, names in os.walk(folder):
            for path in (os.path.join(above, one) for one in names):
                with contextlib.suppress(OSError):
                    content = files.contents(path) if os.path.isfile(path) else b""
                    mode = b"%o " % os.stat(path).st_mode
                    told[f"the hook {os.path.relpath(path, top)}"] = sha256(mode + content).hexdigest()
    return told
