"""Claude's stream-json: lines -> observations, and finally a reply or a classified failure."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.backends import Observation, Reply, Trouble, Turn
from raymond.backends.agent_program import as_table, decode, number
from raymond.backends.claude_bill import Bill, Used
from raymond.machine.failures import REPORTED, Kind
from raymond.machine.inputs import Spending

_BY_NAME: dict[str, Kind] = {
    "authentication_failed": "auth",
    "billing_error": "billing",
    "connection_failed": "overload",
    "model_not_found": "setup",
    "rate_limit": "overload",
    "server_error": "overload",
    "usage_limit_reached": "limit",
}
"""The program's names for API errors; a status alone says less, and is missing without a response."""
_BY_STATUS: dict[int, Kind] = {401: "auth", 403: "auth", 402: "billing", 404: "setup", 413: "context", 429: "overload"}
_LIFE = [Observation("life")]
_PIECE = b'{"type":"stream_event"'
_WORDS = b'"text_delta"'
_READS = frozenset("cat cd echo grep head ls pwd sort tail true wc".split())
_OF_A_MODEL = ("seven_day_opus", "seven_day_sonnet")
"""Usage limits that do not affect the other models."""


class ToolUse(Struct, frozen=True):
    """A tool, and the file or command it is used on."""

    name: str
    subject: str = ""

    @classmethod
    def of(cls, name: str, given: object) -> "ToolUse":
        """The use that a program reports with the input `given`."""
        if isinstance(given, dict):
            for key in ("file_path", "path", "command", "pattern", "url", "query", "description"):
                if isinstance(given.get(key), str):
                    return cls(name, given[key])
        return cls(name)

    @property
    def line(self) -> str:
        """In one line, for people."""
        return f"{self.name} {self.subject}" if self.subject else self.name


class StreamReader:
    """Reads one turn; judges by `is_error` and the presence of a result, never by words."""

    def __init__(self, turn: Turn) -> None:
        self.ending: Reply | Trouble | None = None
        self._turn = turn
        self._bill = Bill(turn)
        self._spoke = False
        self._tools: dict[str, ToolUse] = {}
        """What each tool use is shown as."""
        self._open: dict[str, None] = {}
        """The tool uses whose result has not come."""
        self._refused: set[str] = set()
        """The denied tool uses that were reported."""
        self._failed_as = ""
        """The program's name for its last error."""
        self._opens_at = 0.0
        """When the usage limit that was hit ends, as the program reports it."""
        self._only_model = False
        self._context = 0
        """Tokens that the last message of the model has read and written."""

    @property
    def tool(self) -> str:
        """The tool that runs now; of several, the one that started last."""
        return self._tools[next(reversed(self._open))].line if self._open else ""

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line; anything but JSON is only a sign of life."""
        self._spoke = True
        if line.startswith(_PIECE):
            # A piece of what comes whole later: only words are worth decoding.
            return _words(decode(line)) if _WORDS in line else _LIFE
        event = decode(line)
        match event.get("type"):
            case "assistant":
                self._note_error(event)
                return self._observe(event)
            case "user":
                self._note_results(event)
            case "tool_progress":
                return []  # sent by a timer, even when the tool is stuck
            case "system" if event.get("subtype") == "permission_denied":
                return self._deny(event)
            case "rate_limit_event":
                self._note_limit(event)
            case "result":
                return self._finish(event)
            case _:
                pass
        return _LIFE

    def _finish(self, event: dict[str, Any]) -> list[Observation]:
        notes = [Observation("note", note) for note in self._bill.add(event)]
        now = self._end(event)
        # The first reply counts, with the costs of both.
        self.ending = replace(self.ending, spent=now.spent) if isinstance(self.ending, Reply) else now
        self._open.clear()
        denials = event.get("permission_denials")
        uses = denials if isinstance(denials, list) else ()
        denied = [seen for use in uses if isinstance(use, dict) for seen in self._deny(use)]
        window = _window(event)
        if self._context and window:
            denied.append(Observation("context", f"{self._context}/{window}"))
        return denied + notes or _LIFE

    def _observe(self, event: dict[str, Any]) -> list[Observation]:
        message = event.get("message")
        if not isinstance(message, dict):
            return []
        content = message.get("content")
        seen: list[Observation] = []
        written = 0
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            written += _length(block)
            if block.get("type") == "text":
                seen.append(Observation("text", str(block.get("text", ""))))
            elif block.get("type") == "tool_use":
                use = ToolUse.of(str(block.get("name", "?")), block.get("input"))
                self._tools[str(block.get("id"))] = use
                self._open[str(block.get("id"))] = None
                seen.append(Observation("tool", use.line))
        self._bill.see(message, written)
        used = 0 if event.get("parent_tool_use_id") else _context(message.get("usage"))
        if used and used != self._context:
            self._context = used
            seen.append(Observation("context", str(used)))
        return seen

    def _note_results(self, event: dict[str, Any]) -> None:
        message = event.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self._open.pop(str(block.get("tool_use_id")), None)

    def _deny(self, use: dict[str, Any]) -> list[Observation]:
        """A tool that the program denied: reported when it happens, and again at the end."""
        id = str(use.get("tool_use_id"))
        if id in self._refused:
            return []
        self._refused.add(id)
        name, given = str(use.get("tool_name", "?")), use.get("tool_input")
        tool = self._tools.get(id) or ToolUse.of(name, given)
        patterns = self._patterns(tool)
        if patterns and all(pattern in self._turn.allowed_tools for pattern in patterns):
            patterns = (name,)  # the pattern was allowed already: only the whole tool is left to allow
        return [Observation("denied", tool.line, patterns)]

    def _patterns(self, tool: ToolUse) -> tuple[str, ...]:
        """What would allow `tool`; nothing when no flag does."""
        return _patterns(tool.name, tool.subject)

    def _note_limit(self, event: dict[str, Any]) -> None:
        about = event.get("rate_limit_info")
        if isinstance(about, dict) and about.get("status") == "rejected":
            self._opens_at = number(about.get("resetsAt"))
            self._only_model = about.get("rateLimitType") in _OF_A_MODEL

    def _note_error(self, event: dict[str, Any]) -> None:
        if not event.get("parent_tool_use_id"):  # a subagent may fail while the turn continues
            self._failed_as = str(event.get("error") or "") if event.get("is_api_error_message") else ""

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """A process that ended without a result event is a crash."""
        if self.ending:
            return self.ending
        last = errors.strip().rpartition("\n")[2][-300:]
        how = "ended" if exit_code is None else f"ended with {_code(exit_code)}"
        error = f"the program {how} without a result" + (f": {last}" if last else "")
        return Trouble(kind="crash", error=error, spent=self.spent())

    def spent(self) -> Spending:
        """Until the result reports the cost, a turn that said anything counts as an estimate."""
        if self.ending:
            return self.ending.spent
        return self._bill.so_far() if self._spoke else Spending()

    def _end(self, event: dict[str, Any]) -> Reply | Trouble:
        spent = self._bill.spent()
        if not event.get("is_error"):
            text = event.get("result")
            return Reply(text=text if isinstance(text, str) else "", session=self._turn.session, spent=spent)
        kind = self._kind(event)
        is_limit = kind == "limit"
        return Trouble(
            kind=kind,
            error=_error(event),
            retry_at=number(event.get("retry_at")) or (self._opens_at if is_limit else 0.0),
            only_model=is_limit and self._only_model,
            session=self._turn.session if kind == "cap" else "",
            spent=spent,
        )

    def _kind(self, event: dict[str, Any]) -> Kind:
        named, status = str(event.get("api_error")), event.get("api_error_status")
        acted_out = next((kind for kind in REPORTED if kind == named), None)
        if acted_out:
            return acted_out
        if self._opens_at and status == 429:
            return "limit"
        if event.get("terminal_reason") in ("prompt_too_long", "blocking_limit"):
            return "context"
        if event.get("subtype") == "error_max_budget_usd":
            return "cap"
        if event.get("stop_reason") == "refusal":
            return "refusal"
        for name in (named, self._failed_as):
            if name in _BY_NAME:
                return _BY_NAME[name]
        if isinstance(status, int):
            return _BY_STATUS.get(status, "overload" if status >= 500 else "crash")
        return "crash"


def _words(event: dict[str, Any]) -> list[Observation]:
    """What the model writes just now; what a subagent writes is not shown."""
    delta = as_table(as_table(event.get("event")).get("delta"))
    text = delta.get("text")
    is_shown = not event.get("parent_tool_use_id") and delta.get("type") == "text_delta" and isinstance(text, str)
    return [Observation("words", str(text))] if is_shown and text else _LIFE


def _context(usage: object) -> int:
    used = Used.of("", usage)
    return used.fresh + used.cached + used.kept + used.output


def _window(event: dict[str, Any]) -> int:
    """The largest context window of the models that were used: that of the main one, as helpers are smaller."""
    models = as_table(event.get("modelUsage")).values()
    return int(max((number(as_table(one).get("contextWindow")) for one in models), default=0.0))


def _length(block: dict[str, Any]) -> int:
    """Characters that the model wrote."""
    given = block.get("input")
    return sum(len(text) for text in (block.get("text"), block.get("thinking")) if isinstance(text, str)) + (
        len(str(given)) if isinstance(given, dict) else 0
    )


def tool_line(name: str, given: object) -> str:
    """A tool use in one line: its name and the file or command."""
    return ToolUse.of(name, given).line


def _patterns(name: str, command: str) -> tuple[str, ...]:
    """The patterns that would allow a tool: for a command, the first words of each part; else the whole tool."""
    if name != "Bash" or any(letter in command for letter in "$`()"):
        return (name,)
    parts = [part.strip() for part in re.split(r"&&|\|\||[;|&\n]", re.sub(r"\d?>&\d|\d?>\s*/dev/null", "", command))]
    words = [re.match(r"[\w./-]+( [A-Za-z][\w:./-]*)?(?=$|[\s<>])", part) for part in parts if part]
    if not words or not all(words):
        return (name,)
    needed = dict.fromkeys(found[0] for found in words if found)
    # Commands that only read are never denied, unless there are no others.
    wanted = [one for one in needed if one.partition(" ")[0] not in _READS] or list(needed)
    return tuple(f"Bash({one}:*)" for one in wanted)


def _error(event: dict[str, Any]) -> str:
    errors = event.get("errors")
    if isinstance(errors, list) and errors:
        return "; ".join(str(error) for error in errors)[:2000]
    return str(event.get("result") or event.get("subtype") or "the program reported an error")[:2000]


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
