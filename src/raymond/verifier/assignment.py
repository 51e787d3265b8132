"""What the verifier is asked to do, and what it tells while it does it, as plain data."""

from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language.check import Check
from raymond.machine.step_events import Verdict

TAIL = 8 << 10
"""Characters of the end of an output that agents and people are told."""

Where: TypeAlias = Literal["", "twin", "control", "setup", "first", "offline", "yours"]
"""Where a command runs: in the directory itself, with the sealed files put back, or in a twin without that.

A `setup` runs before, and installs what the work depends on. Before anybody works, checks of a workspace run `first`,
`offline` if they can, and in `yours`, the person's directory, if they are red.
"""
IN_WORDS: dict[Where, str] = {
    "": "",
    "twin": " with the sealed files",
    "control": " with the changed files again",
    "setup": " to install what the work depends on",
    "first": " before anybody works",
    "offline": " before anybody works, without a network",
    "yours": " in your directory",
}
"""What is told after the command."""


class Work(Struct, frozen=True):
    """The workspace of the agents whose work is checked."""

    folder: str
    """Where its trees are."""
    top: str
    run: str
    raymond: str
    way: str
    lend: tuple[str, ...]
    net: str
    """Whether checks have a network: `on`, `off`, or as it turns out."""
    setup: str = ""
    """The command that installs dependencies."""


class Assignment(Struct, frozen=True, kw_only=True):
    """The checks of one gate."""

    checks: tuple[Check, ...]
    timeout: float
    """Seconds for one command that has no time of its own."""
    reruns: int
    """How often a red command runs again before it counts."""
    environment: dict[str, str]
    """What commands find in their environment."""
    cwd: str = ""
    """Where the checks run, whatever has happened to the directory that this process was started in; empty for here."""
    key: str = ""
    """The mark of the run."""
    step: int = 0
    """Its own number: what a command left running is ended after it."""
    turns: tuple[int, ...] = ()
    """The steps whose leftovers are ended first."""
    noted: str = ""
    """The file of the processes that the driver has seen, with their steps."""
    does: Literal["gate", "seal"] = "gate"
    folder: str = ""
    """Where the run keeps its seals; without one, nothing is sealed."""
    sealed: int = 0
    """The step that made the seal of this gate; 0 for none."""
    digest: str = ""
    """Of the seal, as the journal has it; empty when it is not known."""
    accepted: str = ""
    """The digest of the changes that a person has accepted."""
    red_first: bool = False
    """Of a seal: run the checks too."""
    allows_edits: bool = False
    """Changes of sealed files were accepted in advance."""
    seal: tuple[str, ...] = ()
    """Patterns of files that are sealed besides those that are known to decide a check."""
    unseal: tuple[str, ...] = ()
    """Patterns of files that are not sealed."""
    may_change: tuple[str, ...] = ()
    """Patterns of the only files that work in a workspace may change; empty for all."""
    work: Work | None = None
    """Of agents that do not work here: what they did is harvested, and checked in a checkout of it."""


class Noted(Struct, frozen=True, tag="noted"):
    """Something else about the check."""

    text: str


class Began(Struct, frozen=True, tag="began"):
    """A command was started; `again` for the how manyth time beyond the first."""

    command: str
    again: int = 0
    where: Where = ""


class Printed(Struct, frozen=True, tag="printed"):
    """What it printed next."""

    text: str


class Ended(Struct, frozen=True, tag="ended"):
    """A command ended."""

    exit_code: int | None
    seconds: float


class Found(Struct, frozen=True, kw_only=True, tag="found", omit_defaults=True):
    """What the gate has shown; the last thing that is told."""

    verdict: Verdict
    command: str = ""
    """The last command that ran."""
    exit_code: int | None = None
    seconds: float = 0.0
    flaky: bool = False
    reason: str = ""
    is_fault: bool = False
    """The machine had no room: it says nothing about the work."""
    output: str = ""
    """The end of what a red command printed."""
    changes: tuple[str, ...] = ()
    """The sealed files that are not as they were: `changed tests/test_a.py`."""
    digest: str = ""
    """Of those changes: what a person accepts."""
    twin: str = ""
    """How the twin was made, if there was one."""
    review: str = ""
    """The folder with what a person looks at, below that of the seals."""
    files: int = 0
    """How many files are sealed."""
    before: str = ""
    """Of a seal: what the checks found, if they ran."""
    sign: str = ""
    """Of a red command: the same for the same failure."""
    wrote: tuple[str, ...] = ()
    """Files that the check itself changed."""
    new_tests: int = 0
    """Test files that were not there when it was sealed."""
    seal: str = ""
    """Digest of the seal."""
    tree: str = ""
    """Hash of the work tree that was checked."""
    commit: str = ""
    """Where the project stood."""
    vouched: str = ""
    """Of a green check in a checkout: the tree whose deciding files count from now on."""


Told: TypeAlias = Noted | Began | Printed | Ended | Found
