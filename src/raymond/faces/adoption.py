"""What a person should know of a run before they adopt it. Whoever wrote its journal may want to mislead them."""

from collections.abc import Iterator

from raymond.faces import words
from raymond.faces.clock import instant
from raymond.faces.dollars import dollars
from raymond.faces.foreign_text import some, told_lines
from raymond.machine.run import Run

_MANY = 5
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
        ("cost", f"{words.money(run)} so far"),
        ("directory", start.cwd),
        *some("also in", _MANY, _directories(run)),
        *some("root", _MANY, start.roots),
        *some("backend", _MANY, dict.fromkeys([start.backend, *start.backends.values()])),
        *some("set", _MANY, (f"{state}: {values}" for state, values in start.overrides.items())),
        *_money(run),
        *some("notify", _MANY, start.notify or ["nobody"]),
        *some("tool", _MANY, sorted(run.rights.allowed, key=lambda tool: "(" in tool)),
        ("rights", "every tool, without asking" if run.rights.skip else run.rights.mode or "acceptEdits"),
    ]
    return told_lines(told)


def _money(run: Run) -> Iterator[tuple[str, str]]:
    """How much it may spend, and what it takes its turns to cost."""
    start, limits = run.start, run.limits
    prices = (f"{model}: ${one.input:g} and ${one.output:g}" for model, one in start.prices.items())
    yield from some("price", _MANY, (f"{price} for a million tokens in and out" for price in prices))
    yield "unknown", f"${start.unknown_turn_cost:g} for a turn whose cost nobody reports"
    yield "turns", f"at most {limits.turns}" if limits.turns else "no limit"
    yield "budget", dollars(limits.budget) if limits.budget else "none"


def _directories(run: Run) -> list[str]:
    """Where its agents work or return to, apart from the run's own directory."""
    found = [place.cwd for agent in run.agents.values() for place in (agent, *(agent.stack or ()))]
    return sorted({path for path in found if path and path != run.start.cwd})
