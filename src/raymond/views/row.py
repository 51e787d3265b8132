"""A run in one row: what `list` shows of it."""

from msgspec import Struct

from raymond.views.groups import NEEDS_YOU


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in one row of `list`; its JSON is the row of `list --json`."""

    workflow_id: str
    project: str
    status: str
    driven: bool
    pid: int | None = None
    """The process that drives it."""
    workflow: str = ""
    """The name of its workflow, or the kind of loop that it is."""
    at: str = ""
    """Where it stands: the state of its agent, the item of a loop, or how many agents it has."""
    is_over: bool = False
    """Nothing can continue it."""
    exit_code: int | None = None
    """What the command that drives it exits with; None while it runs."""
    agents: int = 0
    cost_usd: float = 0.0
    cost_is_estimated: bool = False
    scripted_cost_usd: float = 0.0
    """What scripted replies are said to have cost, which nobody paid."""
    started_at: str | None = None
    updated_at: str | None = None
    error: str | None = None
    """Why it cannot be read; its status is then `unreadable`."""
    group: str = NEEDS_YOU
    """needs you, working, resting or done."""
    reason: str | None = None
    """Why it does not continue."""
    questions: int = 0
    """Open questions."""
    reviews: int = 0
    """Agents whose work waits for the review of a person, and items of a loop that do."""
    agents_failed: int = 0
    """Agents that have failed."""
    budget_usd: float | None = None
