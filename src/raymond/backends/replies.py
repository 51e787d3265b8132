"""`replies.yaml`: what a scripted agent says, state by state."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from raymond import amounts, durations, pasted
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
_HINT = "a text, or a mapping of " + ", ".join(KEYS)
_EXAMPLE = "START.md: <result>done</result>"
_TEXT, _NUMBER, _FLAG, _LIST, _MAPPING = "a text", "a number", "true or false", "a list", "a mapping"
_WORDS = {str: _TEXT, int: _NUMBER, float: _NUMBER, bool: _FLAG, list: _LIST, dict: _MAPPING}
"""What a value in the file is called."""
_MEANT = {
    "text": _TEXT,
    "cost": _NUMBER,
    "writes": _MAPPING,
    "tools": _LIST,
    "denied": _LIST,
    "fail": _TEXT,
    "error": _TEXT,
    "silent": _FLAG,
    "capped": _FLAG,
    "only_model": _FLAG,
}


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

        document = frontmatter.load(text, file=file, example=_EXAMPLE)
        self._states = document.values
        self._keys = document.keys
        for path, reply in _each(self._states):
            try:
                _read(reply)
            except _WrongReply as wrong:
                message = f"the reply for {path[0]} cannot be used: {wrong}"
                document.refuse((*path, *wrong.path), "bad-reply", message, _HINT, key=wrong.key)
        if document.diagnostics:
            raise WorkflowError(*sorted(document.diagnostics, key=lambda one: (one.line, one.column)))

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
                hint = (
                    frontmatter.suggest(state, known)
                    or f"the states are: {', '.join(map(pasted.name, sorted(states)[:8]))}"
                )
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
        return _read(entry)


class _WrongReply(Exception):
    """A reply cannot be used; `path` leads to what is wrong in it, and with `key` to the name of that."""

    def __init__(self, reason: str, *path: str | int, key: bool = False) -> None:
        super().__init__(reason)
        self.path = path
        self.key = key


def _each(states: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every reply, and the path to it."""
    for state, entry in states.items():
        for path, visit in _items((state,), entry):
            yield from _items(path, visit)


def _items(path: tuple[str | int, ...], entry: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(entry, list):
        yield from (((*path, index), one) for index, one in enumerate(entry))
    else:
        yield path, entry


def _read(entry: Any) -> Scripted:
    """One reply as it is written."""
    if isinstance(entry, str):
        return Scripted(text=entry)
    if not isinstance(entry, dict):
        raise _WrongReply("it is neither text nor a mapping")
    _check_keys(entry, KEYS)
    _check_kinds(entry)
    fields = dict(entry)
    for key in ("delay", "retry_after"):
        if key in fields:
            fields[key] = _seconds(key, fields[key])
    tokens = _tokens(fields.pop("tokens", None) or {})
    reply = msgspec.convert({**fields, **tokens}, Scripted)
    _check_amount(amounts.dollars, reply.cost, "cost")
    if reply.fail and reply.fail not in REPORTED:
        raise _WrongReply(f"fail must be one of {', '.join(REPORTED)}", "fail")
    for path in reply.writes:
        if reason := unsafe(path.removeprefix(TASK_FOLDER)):
            raise _WrongReply(f"`{path}` in writes {reason}", "writes", path, key=True)
    return reply


def _check_keys(entry: Mapping[str, Any], known: Collection[str], *path: str | int) -> None:
    unknown = set(entry) - set(known)
    if unknown:
        within = f" in {path[0]}" if path else ""
        raise _WrongReply(f"unknown key `{min(unknown)}`{within}", *path, min(unknown), key=True)


def _check_kinds(entry: Mapping[str, Any]) -> None:
    for key, meant in _MEANT.items():
        if key in entry:
            _check_kind(meant, entry[key], key)
    for path, text in entry.get("writes", {}).items():
        _check_kind(_TEXT, text, "writes", path)
    for at, name in enumerate(entry.get("denied", [])):
        _check_kind(_TEXT, name, "denied", at)
    for at, tool in enumerate(entry.get("tools", [])):
        _check_kind(_MAPPING, tool, "tools", at)
        _check_keys(tool, ("name", "input"), "tools", at)


def _check_kind(meant: str, value: Any, *path: str | int) -> None:
    found = _WORDS.get(type(value), "nothing")
    if found != meant:
        raise _WrongReply(f"{_named(path)} must be {meant}, not {found}", *path)


def _named(path: tuple[str | int, ...]) -> str:
    """What leads to a value, for people: a list is counted from 1."""
    return "`" + ": ".join(str(one + 1) if isinstance(one, int) else one for one in path) + "`"


def _tokens(tokens: Any) -> dict[str, int]:
    """The fields of a reply that its tokens are."""
    if not isinstance(tokens, dict):
        raise _WrongReply("tokens must be a mapping such as {in: 1000, out: 20}", "tokens")
    _check_keys(tokens, ("in", "out"), "tokens")
    for key, count in tokens.items():
        _check_kind(_NUMBER, count, "tokens", key)
        _check_amount(partial(amounts.count, least=0), count, "tokens", key)
    return {f"tokens_{key}": count for key, count in tokens.items()}


def _check_amount(read: Callable[[object], float], amount: object, *path: str) -> None:
    try:
        read(amount)
    except ValueError as error:
        raise _WrongReply(f"{_named(path)} must be {error}", *path) from None


def _seconds(key: str, value: Any) -> float:
    seconds = durations.parse(str(value))
    if seconds is None:
        raise _WrongReply(f"{key} must be a duration such as 200ms or 5s", key)
    return seconds
