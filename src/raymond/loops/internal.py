"""Internal mode: another program has the items of a loop done by agents of its own. An item is a question to it.

The question is the prompt for an agent, and the answer is what that agent said last: everything before and after is the
same as for agents that Raymond starts itself. What those agents could have done to git is compared, not prevented.
"""

import contextlib
import json
import os
import re
from typing import TYPE_CHECKING

from raymond.digests import sha256
from raymond.language import template
from raymond.loops.branch import TIP, Branch
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

Continue the {name} loop. This is {count}. Work in `{folder}`{what}: change into it first, and do not write anywhere \
else. Do not start another agent, and do not run `raymond`."""


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
        what="" if place.way == "here" else ", a private checkout of this project",
    )


def prompt(step: "Step") -> str:
    """What the agent is told that does the item: the same as one that Raymond starts, but for the first lines."""
    text = files.contents(_WORK).decode().partition("\n---\n")[2]
    named = {name: step.variable(name) for name, _ in template.names(text)}
    told = re.sub(r"\n{3,}", "\n\n", template.render(text, named | {"input": step.input})).strip()
    return re.sub("</(?=ask)", "< /", told, flags=re.IGNORECASE)  # it is the body of that tag


def note(step: "Step") -> None:
    """Keep what git is told, before an agent of another program is at work."""
    files.replace(step.file(_SEEN), json.dumps(_told(step.top, step.branch)).encode(), durable=True)


def changed(step: "Step") -> list[str]:
    """What git is told differently since then."""
    before: dict[str, str] = json.loads(files.contents(step.file(_SEEN)))
    after = _told(step.top, step.branch)
    if _is_own(step.branch, before.get(step.branch.reference(TIP), "")):
        tip = step.branch.tip
        before |= {name: tip for name, one in _references(step.branch).items() if one == tip and name in before}
    differing = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    verbs = ("added" if name not in before else "changed" if name in after else "removed" for name in differing)
    return [f"{name} was {verb}" for name, verb in zip(differing, verbs, strict=True)]


def _is_own(branch: Branch, before: str) -> bool:
    """Whether Raymond alone has committed since then: records, and what a person says to the loop."""
    if not before or not publish.contains(branch.top, branch.tip, before):
        return False
    asked = "--format=%(trailers:key=Raymond-Run,valueonly,separator=%x20)"
    said = publish.ask(branch.top, "log", asked, f"{before}..{branch.tip}", "--").decode("utf-8", "replace")
    return all(line.strip() == branch.id for line in said.splitlines())


def question(found: list[str]) -> str:
    """What a person is asked about that."""
    told = f"while the item was handed out, {', '.join(found)}".replace("</", "< /")
    return f"{told}\nNothing was checked yet. `continue` goes on; `stop` sets the item aside and ends the loop."


def _told(top: str, branch: Branch) -> dict[str, str]:
    """The loop's branch, git's settings and the hooks, each by its name; of most of it, a digest."""
    told = _references(branch)
    for key, value in git.settings(top):
        name = f"git's setting {key}"  # it may have several values
        told[name] = sha256(f"{told.get(name, '')}{value}".encode()).hexdigest()
    named = publish.settings(top).get("core.hookspath", "")
    own = os.path.join(git.directories(top)[1], "hooks")
    for folder in {own, os.path.join(top, os.path.expanduser(named)) if named else own}:
        for above, _, names in os.walk(folder):
            for path in (os.path.join(above, name) for name in names):
                with contextlib.suppress(OSError):
                    content = files.contents(path) if os.path.isfile(path) else b""
                    mode = b"%o " % os.stat(path).st_mode
                    told[f"the hook {os.path.relpath(path, top)}"] = sha256(mode + content).hexdigest()
    return told


def _references(branch: Branch) -> dict[str, str]:
    names = [branch.reference(TIP), *([f"refs/heads/{branch.name}"] if branch.name else [])]
    return {name: commit for name in names if (commit := git.reference(branch.top, name))}
