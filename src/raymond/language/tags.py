"""The tags of the language: what each one says, as a value, and how it is written, in one table."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from raymond.patterns import regex

BUILT_IN = frozenset(
    "input result results run_input workflow_id agent_id state visit attempt task_folder workflow_dir"
    " error gate gate_result transitions include output transition".split()
)
"""Names that a fork may not give to a variable."""
VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")
"""What the name of a variable looks like."""
NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_.:/@+\[\]-]{0,199}")
"""What a model or an effort is called: it becomes an argument of a program, and must not look like a flag."""


class Goto(Struct, frozen=True, kw_only=True, tag="goto", omit_defaults=True):
    """Continue at `target` in the same conversation."""

    target: str
    input: str | None = None
    after: float = 0.0


class Reset(Struct, frozen=True, kw_only=True, tag="reset", omit_defaults=True):
    """Continue at `target` with memory dropped."""

    target: str
    input: str | None = None
    after: float = 0.0
    cd: str = ""


class Call(Struct, frozen=True, kw_only=True, tag="call", omit_defaults=True):
    """Run `target` as a subtask that sees the conversation, then `then`."""

    target: str
    then: str
    input: str | None = None


class Function(Struct, frozen=True, kw_only=True, tag="function", omit_defaults=True):
    """Run `target` as a subtask that sees nothing, then `then`."""

    target: str
    then: str
    input: str | None = None
    model: str = ""
    effort: str = ""


class Fork(Struct, frozen=True, kw_only=True, tag="fork", omit_defaults=True):
    """Start a new agent at `target`; this one continues at `next`."""

    target: str
    next: str = ""
    """Empty when a goto or wait in the same output says it."""
    input: str | None = None
    after: float = 0.0
    cd: str = ""
    variables: dict[str, str] = {}


class Wait(Struct, frozen=True, kw_only=True, tag="wait", omit_defaults=True):
    """Sleep until every forked agent has ended, then `target`."""

    target: str
    input: str | None = None
    timeout: float = 0.0
    timeout_next: str = ""
    failed_next: str = ""
    """Where it continues instead when an agent that it collects has failed."""
    failures: str = ""
    """`ok`: agents that fail are expected, and do not fail the run."""


class Ask(Struct, frozen=True, kw_only=True, tag="ask", omit_defaults=True):
    """Sleep until a person answers `question`, then `next`."""

    question: str
    next: str
    timeout: float = 0.0
    timeout_next: str = ""
    approve: str = ""
    """Who may answer: anybody, or a `person` at a terminal."""
    choices: str = ""
    """The answers it takes, with commas between them; any when there are none."""
    files: str = ""
    """The files to show with it, with blanks between them."""


class Result(Struct, frozen=True, kw_only=True, tag="result", omit_defaults=True):
    """Return `text` to the caller, or end."""

    text: str


Transition: TypeAlias = Goto | Reset | Call | Function | Fork | Wait | Ask | Result

AttributeKind: TypeAlias = Literal[
    "state",  # the name of a state
    "duration",
    "text",  # taken as it is
    "path",  # of a directory
    "name",  # one word, such as a model
    "choices",  # answers with commas between them
]
EXAMPLES: dict[AttributeKind, str] = {"state": "NEXT.md", "duration": "5m", "choices": "yes,no"}


class Attribute(Struct, frozen=True, kw_only=True):
    """An attribute or the body of a tag, and the field of the transition that it fills."""

    kind: AttributeKind
    field: str
    required: bool = False
    unless: tuple[str, ...] = ()
    """Tags beside it in an output that may say it instead."""
    needs: str = ""
    """The attribute without which this one means nothing."""
    zero: bool = False
    """Whether a duration may be zero."""
    choices: tuple[str, ...] = ()
    """The values a name may have; any when there are none."""
    decides: bool = False
    """Whether it decides something without a person; so does every attribute that names a state."""


class TagForm(Struct, frozen=True, kw_only=True):
    """How a tag is written, and what it makes."""

    name: str
    makes: Any
    """The type of its transition; None for a tag that is not a transition."""
    body: Attribute
    example: str
    """A body, for hints."""
    attributes: dict[str, Attribute] = {}
    variables: bool = False
    """Whether every other attribute is a variable."""

    @property
    def body_key(self) -> str:
        """What the body is called in a policy."""
        return "target" if self.body.kind == "state" else "payload"

    def write(self, body: str = "") -> str:
        """The tag with all that it needs."""
        needed = ((name, one.kind) for name, one in self.attributes.items() if one.required)
        attributes = "".join(f' {name}="{EXAMPLES[kind]}"' for name, kind in needed)
        return f"<{self.name}{attributes}>{body or self.example}</{self.name}>"


_TARGET = Attribute(kind="state", field="target", required=True)
_INPUT = Attribute(kind="text", field="input")
_AFTER = Attribute(kind="duration", field="after", zero=True)
_CD = Attribute(kind="path", field="cd")
_RETURN = Attribute(kind="state", field="then", required=True)
# Zero is how a transition says "no timeout", so a written zero would sleep for ever.
_TIMEOUT = Attribute(kind="duration", field="timeout", decides=True)
_TIMEOUT_NEXT = Attribute(kind="state", field="timeout_next", needs="timeout")

_FORMS = (
    TagForm(name="goto", makes=Goto, body=_TARGET, example="NEXT.md", attributes={"input": _INPUT, "after": _AFTER}),
    TagForm(
        name="reset",
        makes=Reset,
        body=_TARGET,
        example="NEXT.md",
        attributes={"input": _INPUT, "after": _AFTER, "cd": _CD},
    ),
    TagForm(name="call", makes=Call, body=_TARGET, example="CHECK.md", attributes={"return": _RETURN, "input": _INPUT}),
    TagForm(
        name="function",
        makes=Function,
        body=_TARGET,
        example="CHECK.md",
        attributes={
            "return": _RETURN,
            "input": _INPUT,
            "model": Attribute(kind="name", field="model"),
            "effort": Attribute(kind="name", field="effort"),
        },
    ),
    TagForm(
        name="fork",
        makes=Fork,
        body=_TARGET,
        example="WORKER.md",
        attributes={
            "next": Attribute(kind="state", field="next", required=True, unless=("goto", "wait")),
            "input": _INPUT,
            "after": _AFTER,
            "cd": _CD,
        },
        variables=True,
    ),
    TagForm(
        name="wait",
        makes=Wait,
        body=_TARGET,
        example="NEXT.md",
        attributes={
            "input": _INPUT,
            "timeout": _TIMEOUT,
            "timeout_next": _TIMEOUT_NEXT,
            "failed_next": Attribute(kind="state", field="failed_next"),
            "failures": Attribute(kind="name", field="failures", choices=("ok",), decides=True),
        },
    ),
    TagForm(
        name="ask",
        makes=Ask,
        body=Attribute(kind="text", field="question", required=True),
        example="question",
        attributes={
            "next": Attribute(kind="state", field="next", required=True),
            "timeout": _TIMEOUT,
            "timeout_next": _TIMEOUT_NEXT,
            "approve": Attribute(kind="name", field="approve", choices=("person",), decides=True),
            "choices": Attribute(kind="choices", field="choices"),
            "files": Attribute(kind="text", field="files"),
        },
    ),
    TagForm(name="result", makes=Result, body=Attribute(kind="text", field="text"), example="text"),
    TagForm(name="print", makes=None, body=Attribute(kind="text", field="text"), example="text"),
)
TAGS: dict[str, TagForm] = {form.name: form for form in _FORMS}
"""Every tag. What reads, allows, checks and documents tags looks here."""
_STATES: dict[Any, tuple[str, ...]] = {
    form.makes: tuple(one.field for one in (form.body, *form.attributes.values()) if one.kind == "state")
    for form in _FORMS
}


def targets(transition: Transition) -> list[str]:
    """The states that a transition names."""
    return [name for field in _STATES[type(transition)] if (name := getattr(transition, field))]


def renamed(transition: Transition, name: Callable[[str], str]) -> Transition:
    """A transition with other names for its states."""
    fields = {field: name(old) for field in _STATES[type(transition)] if (old := getattr(transition, field))}
    return replace(transition, **fields)
