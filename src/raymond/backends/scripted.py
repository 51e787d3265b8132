"""`replies.yaml`: what a scripted agent says, state by state.

`scripted` answers in this process, for speed; `scripted-program` starts `raymond.testing.fake_claude` for
every turn, which speaks Claude's stream-json, so that everything that can happen to a real program really happens.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from raymond import amounts, durations, pasted
from raymond.backends import Abilities, Command, Delayed, Found, Observation, Reply, Trouble, Turn
from raymond.backends.claude_stream import StreamReader, tool_line
from raymond.errors import Diagnostic, WorkflowError
from raymond.language.refusal import cut
from raymond.machine.failures import REPORTED
from raymond.machine.inputs import Spending
from raymond.store.zips import unsafe
from raymond.system.files import contents, make_private, replace
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

_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "testing", "fake_claude.py")
_CAN = Abilities(branches=True, continues=True, takes_session_ids=True, caps_cost=True, recalls=True)


# replies.yaml


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


# The backend


class Session(Struct, frozen=True, kw_only=True):
    """One turn of a conversation; `base` is the turn before it."""

    base: str = ""
    prompt: str
    reply: str
    cost: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


class ScriptedBackend:
    """Answers in this process."""

    name = "scripted"
    paid = False
    can = _CAN

    def __init__(self, replies: Replies | None, sessions: str) -> None:
        self._replies = replies
        self._sessions = sessions

    def answer(self, turn: Turn) -> Delayed:
        """What the replies say to this state, visit and try."""
        reply = self._replies.find(turn) if self._replies else None
        if reply is None:
            return Delayed(ending=Trouble(kind="setup", error=_missing(turn, self._replies is None)))
        tools = [Observation("tool", tool_line(str(tool.get("name", "?")), tool.get("input"))) for tool in reply.tools]
        tools += [Observation("denied", tool, (tool,)) for tool in reply.denied]
        return Delayed(delay=reply.delay, observations=tools, writes=reply.writes, ending=_ending(reply, turn))

    def finish(self, turn: Turn, answer: Delayed) -> None:
        """Keep the conversation."""
        if isinstance(answer.ending, Reply):
            keep(self._sessions, turn.session, turn.base, turn.prompt, answer.ending)
        elif answer.ending and answer.ending.kind == "cap":
            said = Reply(text="", session=turn.session, spent=answer.ending.spent)
            keep(self._sessions, turn.session, turn.base, turn.prompt, said)

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the session of this turn."""
        return recall(self._sessions, turn)


class ScriptedProgram:
    """Starts a program for each turn, as a real backend does."""

    name = "scripted-program"
    paid = True
    can = _CAN

    def __init__(self, replies: Replies | None, sessions: str) -> None:
        self._replies = replies
        self._sessions = sessions

    def command(self, turn: Turn) -> Command:
        """The program, with the reply it should give next to its prompt."""
        reply = self._replies.find(turn) if self._replies else None
        if reply is None:
            reply = Scripted(fail="setup", error=_missing(turn, self._replies is None))
        path = os.path.join(turn.spool, "reply.json")
        argv = [sys.executable, "-I", _PROGRAM, "--sessions", self._sessions, "--reply", path]
        argv += ["--task-folder", turn.task_folder] if turn.task_folder else []
        argv += ["-p", "--output-format", "stream-json", "--verbose", "--session-id", turn.session]
        argv += ["--model", turn.model] if turn.model else []
        argv += ["--effort", turn.effort] if turn.effort else []
        argv += ["--max-budget-usd", f"{turn.cap:.4f}"] if turn.cap else []
        if turn.base:
            argv += ["--resume", turn.base, "--fork-session"]
        if turn.isolated:
            make_private(self._sessions)  # only what is there can be shown inside
        folders = {self._sessions: self._sessions} if turn.isolated else {}
        return Command(argv, files={"reply.json": msgspec.json.encode(reply)}, folders=folders)

    def reader(self, turn: Turn) -> StreamReader:
        """The lines are Claude's."""
        return StreamReader(turn)

    def look(self) -> Found:
        """It is a part of Raymond."""
        return Found(program=sys.executable, payer="nobody")

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the session of this turn."""
        return recall(self._sessions, turn)


def _ending(reply: Scripted, turn: Turn) -> Reply | Trouble | None:
    spent = Spending(cost=reply.cost, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
    if reply.silent:
        return None
    if reply.fail:
        error = reply.error or f"scripted failure: {reply.fail}"
        kind = next(kind for kind in REPORTED if kind == reply.fail)
        return Trouble(kind=kind, error=error, retry_after=reply.retry_after, only_model=reply.only_model, spent=spent)
    if reply.capped and 0 < turn.cap < reply.cost:
        spent = Spending(cost=turn.cap, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
        return Trouble(kind="cap", error="scripted failure: the cap", session=turn.session, spent=spent)
    return Reply(text=reply.text, session=turn.session, spent=spent)


def _missing(turn: Turn, none_at_all: bool) -> str:
    where = "there is no replies.yaml" if none_at_all else "replies.yaml has no reply"
    tries = f", try {turn.tries + 1}" if turn.tries else ""
    return f"{where} for {turn.state}, visit {turn.visit}{tries} (agent {turn.agent})"


def keep(folder: str, session: str, base: str, prompt: str, reply: Reply) -> None:
    """Write one turn of a conversation."""
    make_private(folder)
    spent = reply.spent
    turn = Session(
        base=base,
        prompt=prompt,
        reply=reply.text,
        cost=spent.cost,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
    )
    replace(os.path.join(folder, f"{session}.json"), msgspec.json.encode(turn))


def _load(folder: str, session: str) -> Session | None:
    try:
        return msgspec.json.decode(contents(os.path.join(folder, f"{session}.json")), type=Session)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def recall(folder: str, turn: Turn) -> Reply | None:
    """The reply that the session of `turn` ends with, if it answers the same prompt."""
    said = _load(folder, turn.session)
    if not said or said.prompt != turn.prompt:
        return None
    spent = Spending(cost=said.cost, tokens_in=said.tokens_in, tokens_out=said.tokens_out)
    return Reply(text=said.reply, session=turn.session, spent=spent)


def conversation(folder: str, session: str) -> list[Session]:
    """Everything a session could see, the oldest turn first."""
    turns: list[Session] = []
    while session:
        turn = _load(folder, session)
        if not turn:
            break
        turns.append(turn)
        session = turn.base
    return turns[::-1]
