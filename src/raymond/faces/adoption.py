"""What a person should know of a run before they adopt it. Whoever wrote its journal may want to mislead them."""

import re

from raymond.machine.run import Run
from raymond.text import visible
from raymond.views.times import instant

_LONGEST = 300
_TRACKED = {
    True: "tracks it: IT MAY HAVE COME WITH THE REPOSITORY",
    False: "does not track it",
    None: "cannot tell: IT MAY HAVE COME WITH THE REPOSITORY",
}


def lines(run: Run, status: str, *, is_tracked: bool | None) -> list[str]:
    """Where it comes from, and what it may do here; a line for each thing."""
    start, rights = run.start, run.rights
    told: list[tuple[str, str]] = [
        ("run", f"{start.workflow_id} ({status}), started {instant(run.started_at)}"),
        ("workflow", f"{start.name} from {start.scope_dir}"),
        ("directory", start.cwd),
        *(("also in", path) for path in _directories(run)),
        *(("root", path) for path in start.roots),
        *(("backend", name) for name in dict.fromkeys([start.backend, *start.backends.values()])),
        ("rights", "every tool, without asking" if rights.skip else rights.mode or "acceptEdits"),
        *(("tool", tool) for tool in rights.allowed),
        *(("set", f"{state}: {values}") for state, values in start.overrides.items()),
        *(("notify", target) for target in start.notify or ["nobody"]),
        ("budget", f"${run.limits.budget:.2f}" if run.limits.budget else "none"),
        ("cost", f"${run.cost:.2f} so far"),
        ("git", _TRACKED[is_tracked]),
    ]
    return [f"{name + ':':<11}{_shown(text)}" for name, text in told]


def _directories(run: Run) -> list[str]:
    """Where its agents work or return to, apart from the run's own directory."""
    found = [place.cwd for agent in run.agents.values() for place in (agent, *(agent.stack or ()))]
    return sorted({path for path in found if path and path != run.start.cwd})


def _shown(text: str) -> str:
    """On one line, with nothing hidden by blanks or by length."""
    text = re.sub(r" {3,}", lambda blanks: f" [{len(blanks[0])} spaces] ", visible(text))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [and {len(text) - _LONGEST} characters more]"
