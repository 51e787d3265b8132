"""`replies.yaml`: what a scripted agent says, state by state."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from raymond import amounts, durations
from raymond.backends import Turn
from raymond.errors import Diagnostic, WorkflowError
from raymond.language.refusal import cut
from raymond.machine.failures import REPORTED
from raymond.store.zips import unsafe
from raymond.system.folders import TASK_FOLDER

KEYS = (
    "text",
    "cost",
    "tokens",
    "delay",
    "writes",
    "tools",
    "denied",
    "fail",
    "error",
    "retry_after",
    "silent",
    "capped",
    "only_model",
)


class Scripted(Struct, frozen=True, kw_only=True):
    """One reply."""

    text: str = ""
    cost: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    delay: float = 0.0
    writes: dict[str, str] = {}
    tools: list[dict[str, Any]] = []
    denied: list[str] = []
    """Tools that are denied, as --allow-tool would name them."""
    fail: str = ""
    error: str = ""
    retry_after: float = 0.0
    silent: bool = False
    capped: bool = False
    """The turn ends at its cap instead of at its full cost."""
    only_model: bool = False
    """Of a limit: it holds for the model of this turn alone."""


class Replies:
    """The replies of a workflow: for each state one for all visits, or a list by visit.

    A visit's entry may itself be a list: one reply for each turn of the visit that is rejected or fails.
    `AGENT/STATE` is looked up before `STATE`.
    """

    def __init__(self, text: str, file: str = "replies.yaml") -> None:
        from raymond.language import frontmatter

        self._file = file
        document = frontmatter.load(text, file=file)
        if document.diagnostics:
            raise WorkflowError(*document.diagnostics)
        self._states = document.values
        self._keys = document.keys
        for state, entry in self._states.items():
            for visit in entry if isinstance(entry, list) else [entry]:
                for one in visit if isinstance(visit, list) else [visit]:
                    self._check(state, one)

    def find(self, turn: Turn) -> Scripted | None:
        """The reply to `turn`; None when there is none."""
        bare = turn.state.rpartition(".")[0]
        for key in (f"{turn.agent}/{turn.state}", f"{turn.agent}/{bare}", turn.state, bare):
            if key in self._states:
                return self._pick(self._states[key], turn)
        return None

    def unknown(self, states: Collection[str]) -> Iterator[Diagnostic]:
        """Replies for states that do not exist."""
        from raymond.language import frontmatter
        from raymond.language.allowed_transitions import bare

        known = {name: state for state in states for name in (state, bare(state))}
        for key in self._states:
            state = key.rpartition("/")[2]
            if state not in known:
                hint = frontmatter.suggest(state, known) or f"the states are: {', '.join(sorted(states)[:8])}"
                message = f"there is no state `{cut(state)}`, so this reply is never given"
                yield frontmatter.diagnose(self._keys[key,], "unknown-reply", message, hint)

    def _pick(self, entry: Any, turn: Turn) -> Scripted | None:
        if isinstance(entry, list):
            if turn.visit > len(entry):
                return None
            entry = entry[turn.visit - 1]
        if isinstance(entry, list):
            if turn.tries >= len(entry):
                return None
            entry = entry[turn.tries]
        return self._check(turn.state, entry)

    def _check(self, state: str, entry: Any) -> Scripted:
        if isinstance(entry, str):
            return Scripted(text=entry)
        try:
            if not isinstance(entry, dict):
                raise ValueError("it is neither text nor a mapping")
            fields = dict(entry)
            for key in ("delay", "retry_after"):
                if key in fields:
                    fields[key] = _seconds(key, fields[key])
            tokens = fields.pop("tokens", None) or {}
            if not isinstance(tokens, dict):
                raise ValueError("tokens must be a mapping such as {in: 1000, out: 20}")
            fields |= {"tokens_in": tokens.get("in", 0), "tokens_out": tokens.get("out", 0)}
            unknown = set(fields) - set(Scripted.__struct_fields__)
            if unknown:
                raise ValueError(f"unknown key `{min(unknown)}`")
            reply = msgspec.convert(fields, Scripted)
            _check_amounts(reply)
            if reply.fail and reply.fail not in REPORTED:
                raise ValueError(f"fail must be one of {', '.join(REPORTED)}")
            for path in reply.writes:
                if reason := unsafe(path.removeprefix(TASK_FOLDER)):
                    raise ValueError(f"`{path}` in writes {reason}")
        except (ValueError, TypeError) as error:
            raise WorkflowError(
                Diagnostic(
                    id="bad-reply",
                    message=f"the reply for {state} cannot be used: {error}",
                    file=self._file,
                    hint="a text, or a mapping of " + ", ".join(KEYS),
                )
            ) from None
        return reply


def _check_amounts(reply: Scripted) -> None:
    for key, read, amount in (
        ("cost", amounts.dollars, reply.cost),
        ("tokens: in", partial(amounts.count, least=0), reply.tokens_in),
        ("tokens: out", partial(amounts.count, least=0), reply.tokens_out),
    ):
        try:
            read(amount)
        except ValueError as error:
            raise ValueError(f"`{key}` must be {error}") from None


def _seconds(key: str, value: Any) -> float:
    seconds = durations.parse(str(value))
    if seconds is None:
        raise ValueError(f"{key} must be a duration such as 200ms or 5s")
    return seconds
