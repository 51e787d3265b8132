"""Claude's stream-json: lines -> observations, and at last a reply or a classified failure."""

from typing import Any

import msgspec

from raymond.backends import Observation, Reply, Trouble
from raymond.core import Spending
from raymond.limits import KINDS, UNKNOWN_TURN_COST

_BY_NAME = {
    "authentication_failed": "auth",
    "billing_error": "billing",
    "connection_failed": "overload",
    "model_not_found": "setup",
    "rate_limit": "overload",
    "server_error": "overload",
    "usage_limit_reached": "limit",
}
"""What the program calls an error of the model's side; a status alone says less, and is missing without an answer."""
_BY_STATUS = {401: "auth", 403: "auth", 402: "billing", 404: "setup", 413: "context", 429: "overload"}
_LIFE = [Observation("life")]
_PIECE = b'{"type":"stream_event"'


class StreamReader:
    """Reads one turn; judges by `is_error` and the presence of a result, never by words."""

    def __init__(self, session: str) -> None:
        self.ending: Reply | Trouble | None = None
        self._session = session
        self._spoke = False
        self._tools: dict[str, str] = {}
        """What each tool use is shown as."""
        self._refused: set[str] = set()
        """The tool uses whose refusal was said."""
        self._failed_as = ""
        """What the program called the error that is its last word."""
        self._opens_at = 0.0
        """When a usage limit that was met ends, as the program was told."""

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line; what is no JSON is life and nothing more."""
        self._spoke = True
        if line.startswith(_PIECE):
            return _LIFE  # a piece of what comes whole later: not worth decoding
        try:
            event = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return _LIFE
        if not isinstance(event, dict):
            return _LIFE
        match event.get("type"):
            case "assistant":
                self._note_error(event)
                return self._observe(event)
            case "system" if event.get("subtype") == "permission_denied":
                return self._deny(event)
            case "rate_limit_event":
                self._note_limit(event)
            case "result":
                self.ending = self._end(event)
                denials = event.get("permission_denials")
                uses = denials if isinstance(denials, list) else ()
                return [seen for use in uses if isinstance(use, dict) for seen in self._deny(use)] or _LIFE
            case _:
                pass
        return _LIFE

    def _observe(self, event: dict[str, Any]) -> list[Observation]:
        message = event.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        seen: list[Observation] = []
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "text":
                seen.append(Observation("text", str(block.get("text", ""))))
            elif block.get("type") == "tool_use":
                line = tool_line(str(block.get("name", "?")), block.get("input"))
                self._tools[str(block.get("id"))] = line
                seen.append(Observation("tool", line))
        return seen

    def _deny(self, use: dict[str, Any]) -> list[Observation]:
        """A tool that the program refused the agent: said when it happens, and again at the end."""
        id = str(use.get("tool_use_id"))
        if id in self._refused:
            return []
        self._refused.add(id)
        line = self._tools.get(id) or tool_line(str(use.get("tool_name", "?")), use.get("tool_input"))
        return [Observation("denied", line)]

    def _note_limit(self, event: dict[str, Any]) -> None:
        about = event.get("rate_limit_info")
        if isinstance(about, dict) and about.get("status") == "rejected":
            self._opens_at = _number(about.get("resetsAt"))

    def _note_error(self, event: dict[str, Any]) -> None:
        if not event.get("parent_tool_use_id"):  # an agent below the agent may fail and the turn go on
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
        """Until the result says what it cost, a turn that spoke is counted by an estimate."""
        if self.ending:
            return self.ending.spent
        return Spending(cost=UNKNOWN_TURN_COST, estimated=True) if self._spoke else Spending()

    def _end(self, event: dict[str, Any]) -> Reply | Trouble:
        spent = _spent(event)
        if not event.get("is_error"):
            text = event.get("result")
            return Reply(text=text if isinstance(text, str) else "", session=self._session, spent=spent)
        kind = self._kind(event)
        retry_at = _number(event.get("retry_at")) or (self._opens_at if kind == "limit" else 0.0)
        return Trouble(kind=kind, error=_error(event), retry_at=retry_at, spent=spent)

    def _kind(self, event: dict[str, Any]) -> str:
        named, status = str(event.get("api_error")), event.get("api_error_status")
        if named in KINDS:
            return named
        if self._opens_at and status == 429:
            return "limit"
        if event.get("terminal_reason") == "prompt_too_long":
            return "context"
        if event.get("stop_reason") == "refusal":
            return "refusal"
        for name in (named, self._failed_as):
            if name in _BY_NAME:
                return _BY_NAME[name]
        if isinstance(status, int):
            return _BY_STATUS.get(status, "overload" if status >= 500 else "crash")
        return "crash"


def tool_line(name: str, given: object) -> str:
    """A tool use in one line: its name and the file or command."""
    if isinstance(given, dict):
        for key in ("file_path", "path", "command", "pattern", "url", "query", "description"):
            if isinstance(given.get(key), str):
                return f"{name} {given[key]}"
    return name


def _error(event: dict[str, Any]) -> str:
    errors = event.get("errors")
    if isinstance(errors, list) and errors:
        return "; ".join(str(error) for error in errors)[:2000]
    return str(event.get("result") or event.get("subtype") or "the program reported an error")[:2000]


def _spent(event: dict[str, Any]) -> Spending:
    usage = event.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    cost = _of_this_turn(event)
    return Spending(
        cost=_number(cost) if isinstance(cost, int | float) else UNKNOWN_TURN_COST,
        estimated=not isinstance(cost, int | float),
        tokens_in=int(_number(usage.get("input_tokens"))),
        tokens_out=int(_number(usage.get("output_tokens"))),
    )


def _of_this_turn(event: dict[str, Any]) -> object:
    """Dollars: the total of a session counts the turns before, and those it was branched from."""
    models = event.get("model_usage_since_last_result")
    if not isinstance(models, dict):
        return event.get("total_cost_usd")
    return sum(_number(one.get("costUSD")) for one in models.values() if isinstance(one, dict))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else 0.0


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
