"""What a person should know of a run before they adopt it. Whoever wrote its journal may want to mislead them."""

import re
from collections.abc import Iterable, Iterator

from raymond.machine.run import Run
from raymond.text import visible
from raymond.views.times import instant

_LONGEST = 300
_MANY = 5
"""How many things of a kind are shown: more of them would push away what stands above."""
_UNSEEN = re.compile(r"[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks on the character before them that show nothing, and that other texts may have."""
_TRACKED = {
    True: "tracks it: IT MAY HAVE COME WITH THE REPOSITORY",
    False: "does not track it",
    None: "cannot tell: IT MAY HAVE COME WITH THE REPOSITORY",
}


def lines(run: Run, status: str, *, is_tracked: bool | None) -> list[str]:
    """Where it comes from, and then, just above the question, what it may do here; a line for each thing."""
    start = run.start
    told: list[tuple[str, str]] = [
        ("run", f"{start.workflow_id} ({status}), started {instant(run.started_at)}"),
        ("workflow", f"{start.name} from {start.scope_dir}"),
        ("git", _TRACKED[is_tracked]),
        ("cost", f"${run.cost:.2f} so far"),
        ("directory", start.cwd),
        *_some("also in", _directories(run)),
        *_some("root", start.roots),
        *_some("backend", dict.fromkeys([start.backend, *start.backends.values()])),
        *_some("set", (f"{state}: {values}" for state, values in start.overrides.items())),
        *_money(run),
        *_some("notify", start.notify or ["nobody"]),
        *_some("tool", sorted(run.rights.allowed, key=lambda tool: "(" in tool)),
        ("rights", "every tool, without asking" if run.rights.skip else run.rights.mode or "acceptEdits"),
    ]
    return [f"{name + ':':<11}{_shown(text)}" for name, text in told]


def _some(name: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The first few, and how many more there are."""
    found = list(texts)
    yield from ((name, text) for text in found[:_MANY])
    if found[_MANY:]:
        yield name, f"[and {len(found) - _MANY} more]"


def _money(run: Run) -> Iterator[tuple[str, str]]:
    """How much it may spend, and what it takes its turns to cost."""
    start, limits = run.start, run.limits
    prices = (f"{model}: ${one.input:g} and ${one.output:g}" for model, one in start.prices.items())
    yield from _some("price", (f"{price} for a million tokens in and out" for price in prices))
    yield "unknown", f"${start.unknown_turn_cost:g} for a turn whose cost nobody reports"
    yield "turns", f"at most {limits.turns}" if limits.turns else "no limit"
    yield "budget", f"${limits.budget:.2f}" if limits.budget else "none"


def _directories(run: Run) -> list[str]:
    """Where its agents work or return to, apart from the run's own directory."""
    found = [place.cwd for agent in run.agents.values() for place in (agent, *(agent.stack or ()))]
    return sorted({path for path in found if path and path != run.start.cwd})


def _shown(text: str) -> str:
    """On one line, with nothing hidden by blanks or by length."""
    text = _UNSEEN.sub(lambda mark: ascii(mark[0])[1:-1], visible(text))
    text = re.sub(r" {3,}", lambda blanks: f" [{len(blanks[0])} spaces] ", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [and {len(text) - _LONGEST} characters more]"
