"""Spawning: what the sub-agent is told that does one item of a loop inside of another program."""

from collections.abc import Mapping

from raymond.loops.documents import LOGS, STATES
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import SESSION

_NAMES = {SESSION: "continuous session"}
_OPENING = """\
You are continuing an autonomous {name} loop.

1. Read {state} for current state
2. Read the most recent session log in {logs}/
3. Execute the next item in the queue
4. Update state and session logs
5. If more items remain and under limit, spawn next iteration

Current state file: {state}

Continue the {name} loop. This is session {iteration} of {most}. You start without any memory of the earlier sessions. \
Nobody is watching, so decide for yourself where you would otherwise ask.

Two things are different here. The next item in the queue is the one below: do exactly this item, completely, and no \
other. And Raymond does steps 4 and 5 when you have ended: do not change the state file, the session logs or the \
queue, do not commit, do not spawn another agent, and do not run `raymond`."""
_CLOSING = """\
When you are done, end with a message that has these headings, each with a few lines: `## Summary`, \
`## Implementation Details`, `## Key Decisions`, `## Challenges & Solutions`, `## Learnings`. If something else ought \
to be done, list it under `## Next Steps`: a person will decide about it. Then write, on a line of its own, \
ITERATION_COMPLETE. If you cannot do the item, say why and write ITERATION_FAILED instead."""


def prompt(loop: LoopRun, given: Mapping[str, str], before: str) -> str:
    """The whole of it; `given` describes the item, `before` says why an earlier attempt did not count."""
    name = _NAMES.get(loop.loop, loop.loop.replace("-", " ").removesuffix(" loop"))
    files = loop.documents
    opening = _OPENING.format(
        name=name,
        state=files.shown(STATES[loop.loop]),
        logs=files.shown(LOGS),
        iteration=given.get("iteration", ""),
        most=given.get("most", ""),
    )
    title = f"# {given.get('title', '')}"
    parts = [opening, title, *(given.get(key, "") for key in ("details", "checked", "learnings")), before, _CLOSING]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
