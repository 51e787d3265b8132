"""What a run means to the person it belongs to: whether it needs them, works, rests or is done."""

NEEDS_YOU, WORKING, RESTING, DONE = "needs you", "working", "resting", "done"
GROUPS = (NEEDS_YOU, WORKING, RESTING, DONE)
STATUSES = (
    *("running", "stopping", "waiting", "answered", "interrupted", "paused", "stopped"),
    *("failed", "completed", "cancelled", "unreadable"),
)
"""How a run can look from outside."""
_BY_A_PERSON = ("stop", "paused", "signal")
"""Kinds of stops after which nobody is waited for."""


def group(status: str, *, driven: bool, questions: int, stop_kind: str | None, reviews: int = 0) -> str:
    """The group of a run by its status as seen from outside; a failure, or a review at its end, needs the person."""
    if status in ("completed", "cancelled"):
        return NEEDS_YOU if reviews else DONE
    if questions or status == "unreadable":
        return NEEDS_YOU
    if driven:
        return WORKING
    if status in ("stopped", "paused") and stop_kind in _BY_A_PERSON:
        return RESTING
    return NEEDS_YOU
