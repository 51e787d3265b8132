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

_SEEN, _SHOWN = "git", "git-shown"
"""The files of the loop with what git was told when a person saw it last, and when it was looked at last."""
_HOOK = 1 << 20
"""Bytes of a hook that are compared."""
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


def changed(step: "Step") -> list[str]:
    """What git is told differently since the loop began, or since a person saw it last."""
    is_first = not os.path.exists(step.file(_SEEN))
    name = _SEEN if is_first else _SHOWN
    files.replace(step.file(name), json.dumps(_told(step.top, step.branch)).encode(), durable=True)
    return [] if is_first else shown(step)


def shown(step: "Step") -> list[str]:
    """What was different when that was looked at last."""
    before, after = (json.loads(files.contents(step.file(name))) for name in (_SEEN, _SHOWN))
    differing = sorted(one for one in {*before, *after} if before.get(one) != after.get(one))
    verbs = ("added" if one not in before else "changed" if one in after else "removed" for one in differing)
    return [f"{one} was {verb}" for one, verb in zip(differing, verbs, strict=True)]


def seen(step: "Step") -> None:
    """A person has seen how it was when they were asked; what came since is another difference."""
    files.replace(step.file(_SEEN), files.contents(step.file(_SHOWN)), durable=True)


def question(found: list[str]) -> str:
    """What a person is asked about that."""
    told = f"git is not told the same as before: {', '.join(found)}".replace("</", "< /")
    return f"{told}\nNothing was checked or begun since. `continue` takes it for right; `stop` ends the loop."


def _told(top: str, branch: Branch) -> dict[str, str]:
    """Git's settings, the hooks, and what the loop's branch has that the loop did not commit, each by its name."""
    name, told = f"refs/heads/{branch.name}", dict[str, str]()
    there = git.reference(top, name) if branch.name else ""
    if there and not publish.contains(top, branch.tip, there):
        told[name] = there
    for key, value in git.settings(top):
        if not key.startswith("branch."):  # git itself writes these, when a person switches or pushes
            setting = f"git's setting {key}"  # it may have several values
            told[setting] = sha256(f"{told.get(setting, '')}{value}".encode()).hexdigest()
    named = publish.settings(top).get("core.hookspath", "")
    own = os.path.join(git.directories(top)[1], "hooks")
    for folder in {own, os.path.join(top, os.path.expanduser(named)) if named else own}:
        told |= _hooks(folder, top)
    return told


def _hooks(folder: str, top: str) -> dict[str, str]:
    told = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for one in entries:  # git runs what is right in there
            with contextlib.suppress(OSError):
                if one.is_file():
                    about = b"%o %d " % (one.stat().st_mode, one.stat().st_size)
                    digest = sha256(about + files.contents(one.path, _HOOK)).hexdigest()
                    told[f"the hook {os.path.relpath(one.path, top)}"] = digest
    return told
