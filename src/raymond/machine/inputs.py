"""Every input of `decide`, with its time."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from raymond.language.reading import Reading
from raymond.language.refusal import Refusal
from raymond.machine.agent import AskedFile
from raymond.machine.events import ZERO, RunStopped
from raymond.machine.failures import Kind
from raymond.machine.step_events import Verdict

_LONGEST_MODEL_NAME = 100
"""Characters of the name of a model, which a program may make up."""


class Spending(Struct, frozen=True, kw_only=True):
    """What a step cost and where its transcript begins."""

    cost: float = ZERO
    estimated: bool = False
    unknown: bool = False
    """The cost is unknown; `cost` is the amount counted for such a turn."""
    tokens_in: int = 0
    tokens_out: int = 0
    meter: tuple[int, ...] = ()
    """What the program's own counter shows, if it counts over a whole conversation."""
    offset: int = -1
    model: str = ""
    """What answered, as the program reported it; of several, the one that did most."""


class Named(Struct, frozen=True, kw_only=True):
    """The running turn of `agent` writes a conversation whose id the backend chose."""

    time: float
    agent: str
    session: str


class Begin(Struct, frozen=True, kw_only=True):
    """The driver is about to start a step of `agent`."""

    time: float
    agent: str


class Started(Struct, frozen=True, kw_only=True):
    """The machine has started the step of `agent`."""

    time: float
    agent: str


class Output(Struct, frozen=True, kw_only=True):
    """A step ended and said something."""

    time: float
    agent: str
    reading: Reading
    spent: Spending = Spending()
    session: str = ""
    denied: tuple[str, ...] = ()
    """What would allow the tools that were denied."""
    directories: Mapping[str, str | Refusal] = {}
    """Every `cd` that is `meant` -> the absolute directory, or why it is refused."""
    files: tuple[AskedFile, ...] | Refusal = ()
    """Those that an `<ask>` shows, or why it cannot."""
    text: str = ""
    """The end of the final message, if the state has an evaluator."""


class Failure(Struct, frozen=True, kw_only=True):
    """A step ended without a usable reply."""

    time: float
    agent: str
    kind: Kind
    error: str
    spent: Spending = Spending()
    exit_code: int | None = None
    retry_at: float = ZERO
    only_model: bool = False
    session: str = ""
    denied: tuple[str, ...] = ()
    output: str = ""
    """The last lines that a script printed."""


class Interruption(Struct, frozen=True, kw_only=True):
    """A step was cut off, with its driver or by a person."""

    time: float
    agent: str
    spent: Spending = Spending()
    by_death: bool = False
    """The driver that had started it died, or the verifier."""
    cause: str = ""
    """What died, and how, if it was not the driver."""


class Checked(Struct, frozen=True, kw_only=True):
    """A gate ended."""

    time: float
    agent: str
    verdict: Verdict
    command: str = ""
    exit_code: int | None = None
    seconds: float = ZERO
    flaky: bool = False
    reason: str = ""
    output: str = ""
    """The end of what the red command printed."""
    changes: tuple[str, ...] = ()
    digest: str = ""
    twin: str = ""
    review: str = ""
    seal: str = ""
    tree: str = ""
    commit: str = ""
    sign: str = ""
    """The same for the same failure."""
    wrote: tuple[str, ...] = ()
    vouched: str = ""
    """The tree whose deciding files count from now on."""
    new_tests: int = 0
    spent: Spending = Spending()


class SealTaken(Struct, frozen=True, kw_only=True):
    """What decides a gate was taken down, or `reason` says why not."""

    time: float
    agent: str
    seal: str = ""
    files: int = 0
    commit: str = ""
    seconds: float = ZERO
    reason: str = ""
    before: str = ""
    spent: Spending = Spending()


class Judged(Struct, frozen=True, kw_only=True):
    """An evaluator ended."""

    time: float
    agent: str
    said: str = ""
    """What the pattern found, or the first line of the judge's reply."""
    problem: str = ""
    """Why it can have no verdict, in a few words."""
    spent: Spending = Spending()
    denied: tuple[str, ...] = ()
    directories: Mapping[str, str | Refusal] = {}
    """Every `cd` in what the verdict chooses -> the absolute directory, or why it is refused."""
    files: tuple[AskedFile, ...] | Refusal = ()
    """Those that an `<ask>` in it shows, or why it cannot."""


class Tick(Struct, frozen=True, kw_only=True):
    """Time passed."""

    time: float


class Stop(Struct, frozen=True, kw_only=True):
    """Nothing new may start."""

    time: float
    how: RunStopped


Ending: TypeAlias = Output | Failure | Interruption | Checked | SealTaken | Judged
"""How a step ended."""
Input: TypeAlias = Begin | Started | Named | Ending | Tick | Stop


# What a step cost, as its event says it


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
        "model": spent.model[:_LONGEST_MODEL_NAME],
    }
