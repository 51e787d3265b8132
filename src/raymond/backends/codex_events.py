"""What Codex prints, line by line, and why it failed."""

import contextlib
import re
import shlex
import time
from typing import Any

from msgspec.structs import replace

from raymond.backends import Observation, Reply, Trouble, Turn
from raymond.backends.agent_program import as_table, decode
from raymond.backends.claude_stream import tool_line
from raymond.backends.codex_record import Record, meter_of, priced
from raymond.machine.failures import Kind
from raymond.machine.inputs import Spending
from raymond.machine.prices import Tokens, show
from raymond.patterns import regex

LOG_IN = "run `codex login`, or set CODEX_API_KEY"
_BY_NAME: dict[str, Kind] = {
    "bio_policy": "refusal",
    "context_window_exceeded": "context",
    "cyber_policy": "refusal",
    "http_connection_failed": "overload",
    "internal_server_error": "overload",
    "invalid_prompt": "refusal",
    "misalignment_policy_violation": "refusal",
    "model_not_found": "setup",
    "policy_capacity_unavailable": "overload",
    "rate_limit_exceeded": "overload",
    "response_stream_connection_failed": "overload",
    "response_stream_disconnected": "overload",
    "response_too_many_failed_attempts": "overload",
    "server_overloaded": "overload",
    "unauthorized": "auth",
}
"""What the record calls an error; it is `other` or missing for the rest."""
_BY_STATUS: dict[int, Kind] = {401: "auth", 402: "billing", 403: "auth", 404: "setup", 413: "context", 429: "overload"}
_BY_CODE: dict[str, Kind] = {
    "context_length_exceeded": "context",
    "insufficient_quota": "billing",
    "invalid_api_key": "auth",
    "model_not_found": "setup",
    "rate_limit_exceeded": "overload",
}
"""The API's codes for a rejected request, passed on as they came."""
_BY_WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile("stream disconnected before completion|Connection failed|rate limit exceeded"), "overload"),
    (re.compile("Selected model is at capacity|We.re currently experiencing high demand"), "overload"),
    (re.compile("Codex ran out of room"), "context"),
    (re.compile("You.ve hit your usage limit"), "limit"),
    (re.compile("Quota exceeded|To use Codex with|Your workspace is out of|You hit your spend cap"), "billing"),
)
"""How the program's own sentences begin."""
_STATUS = regex(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_AGAIN = regex(r"try again at (?:(\w{3}) (\d{1,2})[a-z]{2}, (\d{4}) )?(\d{1,2}:\d{2} [AP]M)")
_GONE = regex(r"^Error: .*(?:no rollout found|missing source rollout|Session not found)", re.MULTILINE)
"""The error for a branch whose conversation, or one that it came from, is missing."""
_RENEWED = "your refresh token was already used"
"""Another process has renewed the login a moment before: the next try finds what that one got."""
_TOO_LONG = regex(r'"input_error_code":"input_too_large","max_chars":(\d+)')
_LIFE = [Observation("life")]


class CodexReader:
    """Reads one turn; what the agent says never decides how it ended."""

    def __init__(self, turn: Turn, folder: str = "") -> None:
        self._folder = folder
        """That of the run, in which the program has its record; empty for the person's."""
        self.ending: Reply | Trouble | None = None
        self._turn = turn
        self._id = ""
        """The conversation, as the program calls it."""
        self._begun = False
        self._said = ""
        self._error = ""
        self._meter = (0, 0, 0)
        self._shown: dict[str, str] = {}
        """What each tool use is shown as."""
        self._running: dict[str, None] = {}

    @property
    def tool(self) -> str:
        """The tool that runs now; of several, the one that started last."""
        return self._shown[next(reversed(self._running))] if self._running else ""

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line; anything but an event is only a sign of life."""
        event = decode(line)
        match event.get("type"):
            case "thread.started" if event.get("thread_id"):
                self._id = str(event["thread_id"])
                return [Observation("session", self._id)]
            case "turn.started":
                self._begun = True
            case "item.started" | "item.updated" | "item.completed":
                return self._observe(as_table(event.get("item")), done=event["type"] == "item.completed")
            case "error":
                # Sent for every failed attempt: the turn may still continue, but this is not a sign of it.
                self._error = str(event.get("message") or "")
                return []
            case "turn.completed":
                self._running.clear()
                return self._complete(as_table(event.get("usage")))
            case "turn.failed" if not isinstance(self.ending, Reply):
                self._running.clear()
                self.ending = self._fail(str(as_table(event.get("error")).get("message") or self._error))
            case _:
                pass
        return _LIFE

    def _observe(self, item: dict[str, Any], *, done: bool) -> list[Observation]:
        if item.get("type") == "agent_message" and done:
            self._said = str(item.get("text") or "")
            return [Observation("text", self._said)]
        line, id = _tool(item), str(item.get("id"))
        if not line:
            return _LIFE
        before = self._shown.get(id)
        self._shown[id] = line
        if done:
            self._running.pop(id, None)
        else:
            self._running[id] = None
        return _LIFE if before == line else [Observation("tool", line)]

    def _complete(self, usage: dict[str, Any]) -> list[Observation]:
        """The turn is over. What it says once more about its tokens lowers nothing, and the first reply counts."""
        read, cached, written = (max(pair) for pair in zip(self._meter, meter_of(usage), strict=True))
        self._meter = (read, cached, written)
        spent, note = self._spent()
        if not isinstance(self.ending, Reply):
            self.ending = Reply(text=self._said, session=self._id, spent=spent)
        else:
            self.ending = replace(self.ending, spent=replace(spent, unknown=True))
            note = f"reported a result again: the first reply counts, and the most tokens, ~{show(spent.cost)}"
        return [Observation("note", note)] if note else _LIFE

    def _spent(self) -> tuple[Spending, str]:
        """What the turn cost, and what people should know about it."""
        # The meter covers the whole conversation, and the one it branched from.
        fresh, cached, out = (
            max(0, now - then) for now, then in zip(self._meter, (*self._turn.meter, 0, 0, 0), strict=False)
        )
        record = Record(self._id, self._folder)
        if not fresh and not out and (self._said or self._shown):
            spent = priced(self._turn, record) or self._turn.unpriced()
            return replace(spent, meter=self._meter), f"reported no tokens: ~{show(spent.cost)} is counted"
        model = self._turn.model or record.model
        return self._turn.priced(Tokens(input=fresh, cached=cached, output=out), model=model, meter=self._meter), ""

    def _fail(self, message: str) -> Trouble:
        record = Record(self._id, self._folder)
        kind = _kind(record.failure, message)
        is_limit = kind == "limit"
        unknown = self._turn.unpriced() if self._said or self._shown else Spending()
        return Trouble(
            kind=kind,
            error=_error(message) + (f" ({LOG_IN})" if kind == "auth" else ""),
            retry_at=(record.opens_at or _again(message, time.time())) if is_limit else 0.0,
            only_model=is_limit and "your usage limit for " in message,
            spent=priced(self._turn, record) or unknown,
        )

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """Without a result: tell a turn that could not start from a crash."""
        if self.ending:
            return self.ending
        if self._turn.base and not self._id and _GONE.search(errors):
            return Trouble(kind="session", error=f"the conversation {self._turn.base} is gone")
        most = _TOO_LONG.search(errors)
        if most and not self._begun:
            error = f"the prompt has {len(self._turn.prompt)} characters; Codex accepts at most {most[1]}"
            return Trouble(kind="setup", error=error)
        if self._error and exit_code is not None and exit_code > 0:
            return self._fail(self._error)
        last = errors.strip().rpartition("\n")[2][-300:]
        error = f"the program {_ended(exit_code)} without a result" + (f": {last}" if last else "")
        return Trouble(kind="crash", error=error, spent=self.spent())

    def spent(self) -> Spending:
        """Until the end reports the cost, a turn that began counts as an estimate."""
        if self.ending:
            return self.ending.spent
        return self._turn.unpriced() if self._begun else Spending()


def _tool(item: dict[str, Any]) -> str:
    """A tool use in one line; empty when the item is not one."""
    match item.get("type"):
        case "command_execution":
            return tool_line("Bash", {"command": _command(str(item.get("command") or ""))})
        case "file_change":
            changes = item.get("changes")
            paths = [str(as_table(one).get("path")) for one in changes] if isinstance(changes, list) else []
            return " ".join(["Edit", *paths])
        case "mcp_tool_call":
            return tool_line(f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments"))
        case "web_search":
            return tool_line("WebSearch", item).strip()
        case _:
            return ""


def _command(command: str) -> str:
    """What the model wants run, without the shell that the program wraps around it."""
    with contextlib.suppress(ValueError):
        words = shlex.split(command)
        if len(words) == 3 and words[1] in ("-lc", "-c"):
            return words[2]
    return command


def _ended(code: int | None) -> str:
    if code is None:
        return "ended"
    return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"


# --- why it failed


def _kind(failure: object, message: str) -> Kind:
    """The class of a failure: by its name in the record, by a status, by a code, finally by the program's words."""
    name, about = next(iter(failure.items()), ("", {})) if isinstance(failure, dict) else (failure, {})
    if _RENEWED in message:
        return "overload"
    if name == "usage_limit_exceeded":  # also used for an unpaid bill, which waiting does not pay
        return "limit" if "try again" in message.lower() else "billing"
    said = _STATUS.match(message)
    status = as_table(about).get("http_status_code") or (int(said[1]) if said else 0)
    if isinstance(status, int) and status:
        return _BY_STATUS.get(status, "overload" if status >= 500 else "crash")
    for table, key in ((_BY_NAME, name), (_BY_CODE, _body(message).get("code"))):
        if isinstance(key, str) and key in table:
            return table[key]
    return next((kind for words, kind in _BY_WORDS if words.match(message)), "crash")


def _error(message: str) -> str:
    return str(_body(message).get("message") or message or "the program reported an error")[:2000]


def _body(message: str) -> dict[str, Any]:
    """The API's error for a rejected request, when the program only passes it on."""
    return as_table(decode(message.encode()).get("error"))


def _again(message: str, now: float) -> float:
    """When a usage limit ends, by the program's words: local time, cut to the minute, without a date for today."""
    said = _AGAIN.search(message)
    if not said:
        return 0.0
    month, day, year, clock = said.groups()
    date = f"{month} {day} {year}" if month else time.strftime("%b %d %Y", time.localtime(now))
    try:
        return time.mktime(time.strptime(f"{date} {clock}", "%b %d %Y %I:%M %p")) + 60
    except (ValueError, OverflowError):
        return 0.0
