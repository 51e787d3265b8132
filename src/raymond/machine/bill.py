"""What a step cost, as its event says it."""

from typing import Any

from raymond.machine.inputs import Spending

_LONGEST_NAME = 100
"""Characters of the name of a model, which a program may make up."""


def cost_of(spent: Spending, denied: tuple[str, ...] = ()) -> dict[str, Any]:
    """The cost fields for the event of a step that ended."""
    return {
        "denied": list(denied),
        "cost": spent.cost,
        "estimated": spent.estimated,
        "unknown": spent.unknown,
        "meter": spent.meter,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "offset": spent.offset,
        "model": spent.model[:_LONGEST_NAME],
    }
