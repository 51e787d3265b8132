"""Money as people read it, the same in every view."""

from raymond.machine import prices
from raymond.machine.agent import SCRIPTED
from raymond.machine.events import StepEnded

_NOTHING = 1e-9
"""Less than this is what additions leave over."""


def dollars(real: float, scripted: float = 0.0, *, estimated: bool = False) -> str:
    """What was paid, `~` if that is an estimate, and what scripted replies are said to have cost, which `*` marks."""
    paid = f"{'~' if estimated else ''}{prices.show(max(real, 0.0))}"
    if scripted < _NOTHING:
        return paid
    return f"{paid} and {prices.show(scripted)}*" if real >= _NOTHING else f"{prices.show(scripted)}*"


def of_step(event: StepEnded, backend: str) -> str:
    """What a step of `backend` has cost; empty for a free one."""
    if not event.cost:
        return ""
    is_scripted = backend in SCRIPTED
    real, invented = (0.0, event.cost) if is_scripted else (event.cost, 0.0)
    return dollars(real, invented, estimated=event.estimated and not is_scripted)
