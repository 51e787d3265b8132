"""Programs that answer prompts.

What other packages need to write a backend is offered here; docs/backends.md shows one.
"""

from raymond.backends.contract import (
    Abilities,
    Backend,
    Carrier,
    Command,
    Delayed,
    Direct,
    Found,
    Housed,
    Login,
    Observation,
    Places,
    Reader,
    Reply,
    Setup,
    Trouble,
    Turn,
)
from raymond.machine.inputs import Spending
from raymond.machine.prices import Tokens
from raymond.system.programs import locate

__all__ = [
    "Abilities",
    "Backend",
    "Carrier",
    "Command",
    "Delayed",
    "Direct",
    "Found",
    "Housed",
    "Login",
    "Observation",
    "Places",
    "Reader",
    "Reply",
    "Setup",
    "Spending",
    "Tokens",
    "Trouble",
    "Turn",
    "locate",
]
